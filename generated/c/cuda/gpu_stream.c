#include <stdlib.h>

#include "gpu_device.h"

struct EpDriverEvent {
  GpuContext* context;
  GpuEvent native;
};

bool ep_driver_stream_create(EpDriverDevice* device, EpDriverStream** out, EpError* error) {
  *out = NULL;
  EpDriverStream* stream = calloc(1, sizeof *stream);
  if (stream == NULL) {
    return gpu_out_of_memory(error);
  }
  stream->context = gpu_context_acquire(device, error);
  GpuScope scope;
  bool good = stream->context != NULL && gpu_enter(stream->context, &scope, error);
  if (good) {
    good = GPU_CALL(device, error, StreamCreate, &stream->native, GPU_STREAM_NON_BLOCKING);
    gpu_leave(&scope);
  }
  if (!good) {
    if (stream->context != NULL) {
      gpu_context_drop(stream->context);
    }
    free(stream);
    return false;
  }
  ep_mutex_lock(&device->mutex);
  stream->next = device->streams;
  device->streams = stream;
  ep_mutex_unlock(&device->mutex);
  *out = stream;
  return true;
}

static void gpu_stream_destroy(GpuContext* context, void* object) {
  EpDriverStream* stream = object;
  EpDriverDevice* device = context->device;
  ep_mutex_lock(&device->mutex);
  EpDriverStream** link = &device->streams;
  while (*link != stream) {
    link = &(*link)->next;
  }
  *link = stream->next;
  ep_mutex_unlock(&device->mutex);
  (void)device->driver->api.StreamDestroy(stream->native);
  free(stream);
}

void ep_driver_stream_release(EpDriverStream* stream) {
  EpDriverDevice* device = stream->context->device;
  ep_mutex_lock(&device->mutex);
  stream->released = true;
  ep_mutex_unlock(&device->mutex);
  /* A busy stream stays known until it is idle: what its work uses must not be freed before. */
  gpu_retire(stream->context, gpu_stream_destroy, stream);
}

void* ep_driver_stream_native(EpDriverStream* stream) {
  return stream->native;
}

EpDriverStream* ep_driver_stream_from_native(EpDriverDevice* device, void* native) {
  ep_mutex_lock(&device->mutex);
  EpDriverStream* stream = device->streams;
  while (stream != NULL && (stream->released || stream->native != native)) {
    stream = stream->next;
  }
  ep_mutex_unlock(&device->mutex);
  return stream;
}

bool ep_driver_stream_flush(EpDriverStream* stream, EpError* error) {
  GpuScope scope;
  if (!gpu_enter(stream->context, &scope, error)) {
    return false;
  }
  bool good = GPU_CALL(stream->context->device, error, StreamSynchronize, stream->native);
  gpu_leave(&scope);
  return good;
}

bool ep_driver_event_create(EpDriverDevice* device, EpDriverEvent** out, EpError* error) {
  *out = NULL;
  EpDriverEvent* event = calloc(1, sizeof *event);
  if (event == NULL) {
    return gpu_out_of_memory(error);
  }
  event->context = gpu_context_acquire(device, error);
  GpuScope scope;
  bool good = event->context != NULL && gpu_enter(event->context, &scope, error);
  if (good) {
    good = GPU_CALL(device, error, EventCreate, &event->native, GPU_EVENT_DISABLE_TIMING);
    gpu_leave(&scope);
  }
  if (!good) {
    if (event->context != NULL) {
      gpu_context_drop(event->context);
    }
    free(event);
    return false;
  }
  *out = event;
  return true;
}

/* The driver itself keeps what enqueued waits need. */
void ep_driver_event_release(EpDriverEvent* event) {
  GpuScope scope;
  bool entered = gpu_enter_to_release(event->context, &scope);
  (void)event->context->device->driver->api.EventDestroy(event->native);
  if (entered) {
    gpu_leave(&scope);
  }
  gpu_context_drop(event->context);
  free(event);
}

bool ep_driver_event_record(EpDriverEvent* event, EpDriverStream* stream, EpError* error) {
  GpuScope scope;
  if (!gpu_enter(stream->context, &scope, error)) {
    return false;
  }
  bool good = GPU_CALL(stream->context->device, error, EventRecord, event->native, stream->native);
  gpu_leave(&scope);
  return good;
}

bool ep_driver_event_wait(EpDriverEvent* event, EpDriverStream* stream, EpError* error) {
  GpuScope scope;
  if (!gpu_enter(stream->context, &scope, error)) {
    return false;
  }
  bool good =
      GPU_CALL(stream->context->device, error, StreamWaitEvent, stream->native, event->native, 0);
  gpu_leave(&scope);
  return good;
}

bool ep_driver_event_wait_on_host(EpDriverEvent* event, EpError* error) {
  GpuScope scope;
  if (!gpu_enter(event->context, &scope, error)) {
    return false;
  }
  bool good = GPU_CALL(event->context->device, error, EventSynchronize, event->native);
  gpu_leave(&scope);
  return good;
}
