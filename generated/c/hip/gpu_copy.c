/*
 * Copies. Behind an unfinished wait, an asynchronous copy from or to pageable memory blocks the
 * calling thread until the wait is met, and a thread that would meet it itself never gets there. So
 * copies on a stream go through pinned buffers: the host's part of the copy is done before the call
 * returns, or by a function that the stream calls.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu_device.h"

/* Buffers that are kept for later copies, at most. */
#define GPU_STAGING_KEPT ((size_t)64 << 20)
#define GPU_STAGING_SMALLEST ((size_t)4096)

/* A pinned buffer. Its driver calls need no more than some context of the device. */
struct GpuStaging {
  GpuStaging* next; /* In the list of those that are free. */
  EpDriverDevice* device;
  void* host;
  size_t capacity;
  void* destination; /* Where the stream's function copies to, or null. */
  size_t bytes;
};

static GpuAddress gpu_address(const void* pointer) {
  return (GpuAddress)(uintptr_t)pointer;
}

/* Frees a list of buffers; a GpuRelease. */
static void gpu_staging_free(GpuContext* context, void* object) {
  GpuStaging* staging = object;
  while (staging != NULL) {
    GpuStaging* next = staging->next;
    (void)context->device->driver->api.HostFree(staging->host);
    free(staging);
    staging = next;
  }
}

void gpu_staging_destroy(EpDriverDevice* device) {
  gpu_staging_free(device->primary, device->staging);
  device->staging = NULL;
}

/* Takes the smallest free buffer that is large enough; if none is, takes out what is too much to
 * keep, into `*surplus`. */
static GpuStaging* gpu_staging_find(EpDriverDevice* device, size_t bytes, GpuStaging** surplus) {
  GpuStaging** best = NULL;
  size_t kept = 0;
  ep_mutex_lock(&device->staging_mutex);
  for (GpuStaging** link = &device->staging; *link != NULL; link = &(*link)->next) {
    kept += (*link)->capacity;
    if ((*link)->capacity >= bytes && (best == NULL || (*link)->capacity < (*best)->capacity)) {
      best = link;
    }
  }
  GpuStaging* found = best == NULL ? NULL : *best;
  if (found != NULL) {
    *best = found->next;
  } else if (kept > GPU_STAGING_KEPT) {
    *surplus = device->staging;
    device->staging = NULL;
  }
  ep_mutex_unlock(&device->staging_mutex);
  return found;
}

/* A buffer for `bytes` bytes; `context` is current. */
static GpuStaging* gpu_staging_acquire(GpuContext* context, size_t bytes, EpError* error) {
  EpDriverDevice* device = context->device;
  GpuStaging* surplus = NULL;
  GpuStaging* staging = gpu_staging_find(device, bytes, &surplus);
  if (surplus != NULL) {
    gpu_context_retain(context);
    gpu_retire(context, gpu_staging_free, surplus);
  }
  if (staging == NULL) {
    size_t capacity = GPU_STAGING_SMALLEST;
    while (capacity < bytes && capacity <= SIZE_MAX / 2) {
      capacity *= 2;
    }
    staging = calloc(1, sizeof *staging);
    if (staging == NULL) {
      (void)gpu_out_of_memory(error);
      return NULL;
    }
    staging->device = device;
    staging->capacity = capacity < bytes ? bytes : capacity;
    if (!GPU_CALL(device, error, HostAlloc, &staging->host, staging->capacity,
                  GPU_HOST_ALLOC_PORTABLE)) {
      free(staging);
      return NULL;
    }
  }
  staging->bytes = bytes;
  staging->destination = NULL;
  return staging;
}

static void gpu_staging_give_back(GpuStaging* staging) {
  EpDriverDevice* device = staging->device;
  ep_mutex_lock(&device->staging_mutex);
  staging->next = device->staging;
  device->staging = staging;
  ep_mutex_unlock(&device->staging_mutex);
}

/* Called by the stream, on a thread of the driver's that must not call the driver, nor wait for
 * somebody who does: a call may itself wait for this function. */
static void gpu_staging_arrived(void* argument) {
  GpuStaging* staging = argument;
  if (staging->destination != NULL) {
    memcpy(staging->destination, staging->host, staging->bytes);
  }
  gpu_staging_give_back(staging);
}

/* Enqueues a copy between host and device; the stream's context is current. */
static bool gpu_copy_staged(EpDriverStream* stream, EpCopyKind kind, void* destination,
                            const void* source, size_t bytes, EpError* error) {
  EpDriverDevice* device = stream->context->device;
  GpuStaging* staging = gpu_staging_acquire(stream->context, bytes, error);
  if (staging == NULL) {
    return false;
  }
  bool good;
  if (kind == EP_COPY_HOST_TO_DEVICE) {
    memcpy(staging->host, source, bytes);
    good = GPU_CALL(device, error, MemcpyHtoDAsync, gpu_address(destination), staging->host, bytes,
                    stream->native);
  } else {
    staging->destination = destination;
    good = GPU_CALL(device, error, MemcpyDtoHAsync, staging->host, gpu_address(source), bytes,
                    stream->native);
  }
  if (good &&
      !GPU_CALL(device, error, LaunchHostFunc, stream->native, gpu_staging_arrived, staging)) {
    /* The copy is on its way into or out of the buffer. */
    (void)device->driver->api.StreamSynchronize(stream->native);
    good = false;
  } else if (good) {
    return true;
  }
  gpu_staging_give_back(staging);
  return good;
}

/* Enqueues a copy whose host memory the driver may take its time for. */
static bool gpu_copy_plain(EpDriverStream* stream, EpCopyKind kind, void* destination,
                           const void* source, size_t bytes, EpError* error) {
  EpDriverDevice* device = stream->context->device;
  switch (kind) {
    case EP_COPY_HOST_TO_DEVICE:
      return GPU_CALL(device, error, MemcpyHtoDAsync, gpu_address(destination),
                      (void*)(uintptr_t)source, bytes, stream->native);
    case EP_COPY_DEVICE_TO_HOST:
      return GPU_CALL(device, error, MemcpyDtoHAsync, destination, gpu_address(source), bytes,
                      stream->native);
    case EP_COPY_DEVICE_TO_DEVICE:
      break;
  }
  return GPU_CALL(device, error, MemcpyDtoDAsync, gpu_address(destination), gpu_address(source),
                  bytes, stream->native);
}

bool ep_driver_copy(EpDriverDevice* device, EpDriverStream* stream, EpCopyKind kind,
                    void* destination, const void* source, size_t bytes, EpError* error) {
  EpDriverStream* used = stream;
  if (stream == NULL && !ep_driver_stream_create(device, &used, error)) {
    return false;
  }
  bool staged = stream != NULL && kind != EP_COPY_DEVICE_TO_DEVICE;
  GpuScope scope;
  bool good = gpu_enter(used->context, &scope, error) &&
              gpu_leave(&scope, (staged ? gpu_copy_staged : gpu_copy_plain)(used, kind, destination,
                                                                            source, bytes, error));
  if (stream == NULL) {
    good = ep_driver_stream_flush(used, error) && good;
    ep_driver_stream_release(used);
  }
  return good;
}
