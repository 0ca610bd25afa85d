#include <stdlib.h>

#include "gpu_device.h"

struct EpDriverEvent {
  GpuContext* context;
  GpuEvent native;
};

bool ep_driver_stream_create(EpDriverDevice* device, EpDriverStream** out, EpError* error) {
  *out = NULL;
  GpuScope scope;
  EpDriverStream* stream = gpu_object_begin(device, false, sizeof *stream, &scope, error);
  if (stream == NULL) {
    return false;
  }
  bool good = GPU_CALL(device, error, StreamCreate, &stream->native, GPU_STREAM_NON_BLOCKING);
  if (good && !GPU_CALL(device, error, EventCreate, &stream->mark, GPU_EVENT_DISABLE_TIMING)) {
    (void)device->driver->api.StreamDestroy(stream->native);
    good = false;
  }
  *out = gpu_object_end(stream, &scope, good);
  if (good) {
    ep_mutex_lock(&device->mutex);
    stream->next = device->streams;
    device->streams = stream;
    ep_mutex_unlock(&device->mutex);
  }
  return good;
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
  (void)device->driver->api.EventDestroy(stream->mark);
  (void)device->driver->api.StreamDestroy(stream->native);
  free(stream);
}

void ep_driver_stream_release(EpDriverStream* stream) {
  EpDriverDevice* device = stream->context->device;
  ep_mutex_lock(&device->mutex);
  stream->released = true;
  ep_mutex_unlock(&device->mutex);
  /* A busy stream stays known: what its work uses must not be freed before. */
  (gpu_has_work(stream) ? gpu_retire : gpu_release_now)(stream->context, gpu_stream_destroy,
                                                        stream);
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
  return GPU_CALL_IN(stream->context, scope, error, StreamSynchronize, stream->native);
}

bool ep_driver_event_create(EpDriverDevice* device, EpDriverEvent** out, EpError* error) {
  *out = NULL;
  GpuScope scope;
  EpDriverEvent* event = gpu_object_begin(device, false, sizeof *event, &scope, error);
  if (event != NULL) {
    *out = gpu_object_end(
        event, &scope,
        GPU_CALL(device, error, EventCreate, &event->native, GPU_EVENT_DISABLE_TIMING));
  }
  return *out != NULL;
}

/* The driver itself keeps what enqueued waits need. */
void ep_driver_event_release(EpDriverEvent* event) {
  GpuScope scope;
  bool entered = gpu_enter_to_release(event->context, &scope);
  (void)event->context->device->driver->api.EventDestroy(event->native);
  if (entered) {
    (void)gpu_leave(&scope, true);
  }
  gpu_context_drop(event->context);
  free(event);
}

bool ep_driver_event_record(EpDriverEvent* event, EpDriverStream* stream, EpError* error) {
  GpuScope scope;
  return GPU_CALL_IN(stream->context, scope, error, EventRecord, event->native, stream->native);
}

bool ep_driver_event_wait(EpDriverEvent* event, EpDriverStream* stream, EpError* error) {
  GpuScope scope;
  return GPU_CALL_IN(stream->context, scope, error, StreamWaitEvent, stream->native, event->native,
                     0);
}

bool ep_driver_event_wait_on_host(EpDriverEvent* event, EpError* error) {
  GpuScope scope;
  return GPU_CALL_IN(event->context, scope, error, EventSynchronize, event->native);
}
