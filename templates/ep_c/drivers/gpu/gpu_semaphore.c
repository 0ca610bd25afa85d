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
  GpuSemaphoreHandleDesc handle = {0};
  handle.type = (GpuSemaphoreHandleType)type->driver_type;
  GPU_SET_HANDLE(&handle, type, native);
  *out = NULL;
  GpuScope scope;
  EpDriverSemaphore* semaphore = gpu_object_begin(device, false, sizeof *semaphore, &scope, error);
  if (semaphore != NULL) {
    *out = gpu_object_end(
        semaphore, &scope,
        GPU_CALL(device, error, ImportExternalSemaphore, &semaphore->native, &handle));
  }
  return *out != NULL;
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
  EpDriverDevice* device = stream->context->device;
  GpuScope scope;
  gpu_gate_lock(device);
  bool good = GPU_CALL_IN(stream->context, scope, error, WaitExternalSemaphoresAsync,
                          &semaphore->native, &parameters, 1, stream->native);
  ep_mutex_unlock(&device->gate);
  return good;
}

bool ep_driver_semaphore_signal(EpDriverSemaphore* semaphore, EpDriverStream* stream,
                                uint64_t value, EpError* error) {
  GpuSignalParams parameters = {0};
  parameters.params.fence.value = value;
  GpuScope scope;
  return GPU_CALL_IN(stream->context, scope, error, SignalExternalSemaphoresAsync,
                     &semaphore->native, &parameters, 1, stream->native);
}
