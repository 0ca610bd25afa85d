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

/* A pinned buffer, for all contexts. It is in the primary one, which outlives those of graphics. */
struct GpuStaging {
  GpuContext* context;
  GpuStaging* next; /* In the list of those that are free. */
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
    gpu_context_drop(staging->context);
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

static GpuStaging* gpu_staging_create(EpDriverDevice* device, size_t bytes, EpError* error) {
  size_t capacity = GPU_STAGING_SMALLEST;
  while (capacity < bytes && capacity <= SIZE_MAX / 2) {
    capacity *= 2;
  }
  GpuScope scope;
  GpuStaging* staging = gpu_object_begin(device, true, sizeof *staging, &scope, error);
  if (staging == NULL) {
    return NULL;
  }
  staging->capacity = capacity < bytes ? bytes : capacity;
  return gpu_object_end(staging, &scope,
                        GPU_CALL(device, error, HostAlloc, &staging->host, staging->capacity,
                                 GPU_HOST_ALLOC_PORTABLE));
}

static GpuStaging* gpu_staging_acquire(EpDriverDevice* device, size_t bytes, EpError* error) {
  GpuStaging* surplus = NULL;
  GpuStaging* staging = gpu_staging_find(device, bytes, &surplus);
  if (surplus != NULL) {
    gpu_context_retain(surplus->context);
    gpu_retire(surplus->context, gpu_staging_free, surplus);
  }
  if (staging == NULL) {
    staging = gpu_staging_create(device, bytes, error);
  }
  if (staging != NULL) {
    staging->bytes = bytes;
    staging->destination = NULL;
  }
  return staging;
}

static void gpu_staging_give_back(GpuStaging* staging) {
  EpDriverDevice* device = staging->context->device;
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

/* Enqueues a copy; with pageable memory the driver may take its time. The context is current. */
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

/* Enqueues a copy between host and device by way of a buffer. */
static bool gpu_copy_staged(EpDriverStream* stream, EpCopyKind kind, void* destination,
                            const void* source, size_t bytes, EpError* error) {
  EpDriverDevice* device = stream->context->device;
  GpuStaging* staging = gpu_staging_acquire(device, bytes, error);
  if (staging == NULL) {
    return false;
  }
  bool good;
  if (kind == EP_COPY_HOST_TO_DEVICE) {
    memcpy(staging->host, source, bytes);
    good = gpu_copy_plain(stream, kind, destination, staging->host, bytes, error);
  } else {
    staging->destination = destination;
    good = gpu_copy_plain(stream, kind, staging->host, source, bytes, error);
  }
  if (good) {
    if (GPU_CALL(device, error, LaunchHostFunc, stream->native, gpu_staging_arrived, staging)) {
      return true;
    }
    /* The copy is on its way into or out of the buffer. */
    (void)device->driver->api.StreamSynchronize(stream->native);
  }
  gpu_staging_give_back(staging);
  return false;
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
