/*
 * Releases behind work. Some of the driver's calls that release block until the whole device is idle,
 * and hold up the calls of other threads meanwhile. If the device then waits for a semaphore whose
 * owner needs the driver, nobody gets on. So they are made only while no stream has work, and
 * nothing that waits for a semaphore is enqueued meanwhile.
 */
#include <stdlib.h>

#include "ep_process.h"
#include "gpu_device.h"

struct GpuRetired {
  GpuRetired* next;
  GpuContext* context;
  GpuRelease* release;
  void* object;
};

bool gpu_has_work(EpDriverStream* stream) {
  const DriverApi* api = &stream->context->device->driver->api;
  GpuScope scope;
  if (!gpu_enter_to_release(stream->context, &scope)) {
    return false;
  }
  GpuResult result = api->StreamQuery(stream->native);
  if (result != GPU_SUCCESS && result != GPU_NOT_READY) {
    result = api->StreamQuery(stream->native);
  }
  return gpu_leave(&scope, result == GPU_NOT_READY);
}

bool gpu_stream_follow(EpDriverDevice* device, GpuStream follower, EpError* error) {
  bool good = true;
  ep_mutex_lock(&device->mutex);
  for (EpDriverStream* stream = device->streams; good && stream != NULL; stream = stream->next) {
    GpuScope scope;
    /* A mark in an idle stream would be work itself. */
    if (gpu_has_work(stream)) {
      good =
          GPU_CALL_IN(stream->context, scope, error, EventRecord, stream->mark, stream->native) &&
          GPU_CALL(device, error, StreamWaitEvent, follower, stream->mark, 0);
    }
  }
  ep_mutex_unlock(&device->mutex);
  return good;
}

bool ep_driver_device_flush(EpDriverDevice* device, EpError* error) {
  const DriverApi* api = &device->driver->api;
  ep_mutex_lock(&device->mutex);
  GpuContext* context = device->streams == NULL ? NULL : device->streams->context;
  if (context != NULL) {
    gpu_context_retain(context);
  }
  ep_mutex_unlock(&device->mutex);
  GpuScope scope;
  if (context == NULL || !gpu_enter(context, &scope, error)) {
    gpu_context_drop(context);
    return context == NULL;
  }
  /* A thread that waits for a stream itself would keep a processor busy. */
  GpuStream last = NULL;
  GpuEvent end = NULL;
  bool good = GPU_CALL(device, error, StreamCreate, &last, GPU_STREAM_NON_BLOCKING) &&
              GPU_CALL(device, error, EventCreate, &end,
                       GPU_EVENT_DISABLE_TIMING | GPU_EVENT_BLOCKING_SYNC) &&
              gpu_stream_follow(device, last, error) &&
              GPU_CALL(device, error, EventRecord, end, last) &&
              GPU_CALL(device, error, EventSynchronize, end);
  if (end != NULL) {
    (void)api->EventDestroy(end);
  }
  if (last != NULL) {
    (void)api->StreamDestroy(last);
  }
  (void)gpu_context_end(context, &scope, false);
  return good;
}

static bool gpu_is_idle(EpDriverDevice* device) {
  ep_mutex_lock(&device->mutex);
  EpDriverStream* stream = device->streams;
  while (stream != NULL && !gpu_has_work(stream)) {
    stream = stream->next;
  }
  ep_mutex_unlock(&device->mutex);
  return stream == NULL;
}

void gpu_release_now(GpuContext* context, GpuRelease* release, void* object) {
  GpuScope scope;
  bool entered = gpu_enter_to_release(context, &scope);
  release(context, object);
  if (entered) {
    (void)gpu_leave(&scope, true);
  }
  gpu_context_drop(context);
}

/* Releases all that is retired; the device is idle, its gate is held. */
static void gpu_release_retired(EpDriverDevice* device) {
  while (device->retired != NULL) {
    GpuRetired* retired = device->retired;
    device->retired = retired->next;
    gpu_release_now(retired->context, retired->release, retired->object);
    free(retired);
  }
}

void gpu_gate_lock(EpDriverDevice* device) {
  ep_mutex_lock(&device->gate);
  if (device->retired != NULL && gpu_is_idle(device)) {
    gpu_release_retired(device);
  }
}

static void gpu_reap(void* argument) {
  EpDriverDevice* device = argument;
  EpDriver* driver = device->driver;
  EpError ignored;
  bool failed = false;
  bool done = false;
  while (!done) {
    ep_mutex_lock(&device->gate);
    done = failed || device->retired == NULL || gpu_is_idle(device);
    if (done) {
      gpu_release_retired(device);
      device->reaping = false;
    }
    ep_mutex_unlock(&device->gate);
    /* A driver that fails twice does no work any more. */
    failed = !done && !ep_driver_device_flush(device, &ignored) &&
             !ep_driver_device_flush(device, &ignored);
  }
  ep_process_release(driver);
}

/* Leaves `object` to the device's thread, which is started if there is none; false if there is no
 * memory or no thread to be had. The gate is held. */
static bool gpu_retire_later(GpuContext* context, GpuRelease* release, void* object) {
  EpDriverDevice* device = context->device;
  GpuRetired* retired = malloc(sizeof *retired);
  if (retired != NULL && !device->reaping) {
    ep_process_retain(device->driver);
    device->reaping = ep_thread_start(gpu_reap, device);
    if (!device->reaping) {
      ep_process_release(device->driver);
    }
  }
  if (retired == NULL || !device->reaping) {
    free(retired);
    return false;
  }
  *retired = (GpuRetired){device->retired, context, release, object};
  device->retired = retired;
  return true;
}

void gpu_retire(GpuContext* context, GpuRelease* release, void* object) {
  EpDriverDevice* device = context->device;
  EpError ignored;
  ep_mutex_lock(&device->gate);
  bool idle = gpu_is_idle(device);
  if (idle || !gpu_retire_later(context, release, object)) {
    if (!idle) {
      /* Short of memory or threads: this call has to wait, but no other. */
      ep_mutex_unlock(&device->gate);
      (void)ep_driver_device_flush(device, &ignored);
      ep_mutex_lock(&device->gate);
    }
    gpu_release_now(context, release, object);
  }
  ep_mutex_unlock(&device->gate);
}
