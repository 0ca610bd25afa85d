#include <stdlib.h>

#include "gpu_device.h"

struct EpDriverSemaphore {
  GpuContext* context;
  GpuExternalSemaphore native;
};

bool ep_driver_can_import_semaphore(EpDriverDevice* device, const EpHandleType* type) {
  return gpu_backend_imports_semaphore(device, type);
}

bool ep_driver_import_semaphore(EpDriverDevice* device, const EpHandleType* type,
                                EpNativeHandle native, EpDriverSemaphore** out, EpError* error) {
  *out = NULL;
  EpDriverSemaphore* semaphore = calloc(1, sizeof *semaphore);
  if (semaphore == NULL) {
    return gpu_out_of_memory(error);
  }
  GpuSemaphoreHandleDesc handle = {0};
  handle.type = (GpuSemaphoreHandleType)type->driver_type;
  if (type->kind == EP_NATIVE_FD) {
    handle.handle.fd = native.fd;
  } else {
    handle.handle.win32.handle = native.handle;
  }
  GpuScope scope;
  semaphore->context = gpu_context_begin(device, &scope, error);
  if (semaphore->context == NULL ||
      !gpu_context_end(
          semaphore->context, &scope,
          GPU_CALL(device, error, ImportExternalSemaphore, &semaphore->native, &handle))) {
    free(semaphore);
    return false;
  }
  *out = semaphore;
  return true;
}

static void gpu_semaphore_destroy(GpuContext* context, void* object) {
  EpDriverSemaphore* semaphore = object;
  (void)context->device->driver->api.DestroyExternalSemaphore(semaphore->native);
  free(semaphore);
}

void ep_driver_semaphore_release(EpDriverSemaphore* semaphore) {
  /* The driver wants all waits and signals done before. */
  gpu_retire(semaphore->context, gpu_semaphore_destroy, semaphore);
}

bool ep_driver_semaphore_wait(EpDriverSemaphore* semaphore, EpDriverStream* stream, uint64_t value,
                              EpError* error) {
  GpuWaitParams parameters = {0};
  parameters.params.fence.value = value;
  GpuScope scope;
  return gpu_enter(stream->context, &scope, error) &&
         gpu_leave(&scope, GPU_CALL(stream->context->device, error, WaitExternalSemaphoresAsync,
                                    &semaphore->native, &parameters, 1, stream->native));
}

bool ep_driver_semaphore_signal(EpDriverSemaphore* semaphore, EpDriverStream* stream,
                                uint64_t value, EpError* error) {
  GpuSignalParams parameters = {0};
  parameters.params.fence.value = value;
  GpuScope scope;
  return gpu_enter(stream->context, &scope, error) &&
         gpu_leave(&scope, GPU_CALL(stream->context->device, error, SignalExternalSemaphoresAsync,
                                    &semaphore->native, &parameters, 1, stream->native));
}
