/* What HIP has of its own: a current device in place of contexts, and probes that ask the driver. */
#include <stdio.h>
#include <string.h>

#include "gpu_device.h"

/* The first release whose header has timeline semaphores, as hipDriverGetVersion() counts. */
#define HIP_TIMELINE_VERSION 60000000

/* hipDeviceGetUuid() answers a serial number. The graphics drivers of the same GPU build their UUID
 * from its PCI address, which is what an application can compare with. */
static void hip_uuid_from_bus_id(EpDeviceInfo* info) {
  unsigned part[4];
  if (info->pci_bus_id != NULL &&
      sscanf(info->pci_bus_id, "%x:%x:%x.%x", &part[0], &part[1], &part[2], &part[3]) == 4) {
    for (size_t i = 0; i < 4; ++i) {
      uint32_t word = part[i];
      memcpy(info->uuid + i * sizeof word, &word, sizeof word);
    }
    info->has_uuid = true;
  }
}

void gpu_backend_identify(EpDriverDevice* device) {
  const DriverApi* api = &device->driver->api;
  EpDeviceInfo* info = &device->info;
  hip_uuid_from_bus_id(info);
  hipDeviceProp_tR0600 properties = {0};
  /* Only Windows knows LUIDs; elsewhere the mask is 0. */
  if (api->GetDeviceProperties != NULL &&
      api->GetDeviceProperties(&properties, device->native) == hipSuccess &&
      properties.luidDeviceNodeMask != 0) {
    info->has_luid = true;
    memcpy(&info->luid, properties.luid, sizeof info->luid);
  }
}

bool gpu_backend_retain(EpDriverDevice* device, void** native, EpError* error) {
  (void)device;
  (void)error;
  *native = NULL;
  return true;
}

void gpu_backend_release(GpuContext* context) {
  (void)context;
}

bool gpu_enter(GpuContext* context, GpuScope* scope, EpError* error) {
  EpDriverDevice* device = context->device;
  scope->device = device;
  return GPU_CALL(device, error, GetDevice, &scope->previous) &&
         (scope->previous == device->native || GPU_CALL(device, error, SetDevice, device->native));
}

bool gpu_leave(GpuScope* scope, bool good) {
  EpDriverDevice* device = scope->device;
  if (scope->previous != device->native &&
      device->driver->api.SetDevice(scope->previous) != hipSuccess) {
    /* The application must find its own device again. */
    (void)device->driver->api.SetDevice(scope->previous);
  }
  return good;
}

bool gpu_backend_imports_memory(EpDriverDevice* device, const EpHandleType* type) {
  (void)device;
  (void)type;
  return true;
}

/* Asks the driver to import a handle that is none. One that knows and supports the type complains
 * of the handle, others of the type. */
static hipError_t hip_ask_for_semaphore(EpDriverDevice* device, const EpHandleType* type) {
  EpError ignored;
  GpuScope scope;
  hipError_t result = hipErrorUnknown;
  hipExternalSemaphore_t semaphore = NULL;
  hipExternalSemaphoreHandleDesc desc = {0};
  desc.type = (hipExternalSemaphoreHandleType)type->driver_type;
  /* Which is -1 as a descriptor too. */
  EpNativeHandle none = {.handle = (void*)(intptr_t)-1};
  GPU_SET_HANDLE(&desc, type, none);
  GpuContext* context = gpu_context_begin(device, false, &scope, &ignored);
  if (context != NULL) {
    result = device->driver->api.ImportExternalSemaphore(&semaphore, &desc);
    (void)gpu_context_end(context, &scope, false);
  }
  return result;
}

/* Whether the driver has timeline semaphores; `*sure` says whether it has given an answer. */
static bool hip_has_timeline(EpDriverDevice* device, const EpHandleType* type, bool* sure) {
  int version = 0;
  *sure = device->driver->api.DriverGetVersion(&version) == hipSuccess;
  if (!*sure || version < HIP_TIMELINE_VERSION) {
    return false;
  }
  hipError_t result = hip_ask_for_semaphore(device, type);
  bool known = result == hipErrorInvalidHandle || result == hipErrorOperatingSystem;
  *sure = known || result == hipErrorInvalidValue || result == hipErrorNotSupported;
  return known;
}

bool gpu_backend_imports_semaphore(EpDriverDevice* device, const EpHandleType* type) {
  /* Fences of Direct3D 12 are as old as the call. */
  if (type->driver_type == hipExternalSemaphoreHandleTypeD3D12Fence) {
    return true;
  }
  unsigned asked = 1u << (2 * (type->driver_type % 8));
  unsigned known = asked << 1;
  unsigned probes = atomic_load_explicit(&device->probes, memory_order_relaxed);
  if ((probes & asked) == 0) {
    bool sure = false;
    bool has = hip_has_timeline(device, type, &sure);
    probes = (sure ? asked : 0) | (has ? known : 0);
    (void)atomic_fetch_or_explicit(&device->probes, probes, memory_order_relaxed);
  }
  return (probes & known) != 0;
}

#if ORT_API_VERSION >= 25
bool gpu_backend_graphics(EpDriverDevice* device, const OrtApi* api,
                          const OrtGraphicsInteropConfig* config, void** native, EpError* error) {
  (void)device;
  (void)api;
  (void)config;
  (void)error;
  *native = NULL;
  return true;
}
#endif
