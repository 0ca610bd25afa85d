/* What CUDA has of its own: contexts, one on top of another, and attributes that answer probes. */
#include <string.h>

#include "gpu_device.h"
#include "graphics_options.h"

void gpu_backend_identify(EpDriverDevice* device) {
  const DriverApi* api = &device->driver->api;
  EpDeviceInfo* info = &device->info;
  CUuuid uuid;
  if (api->DeviceGetUuid != NULL && api->DeviceGetUuid(&uuid, device->native) == CUDA_SUCCESS) {
    info->has_uuid = true;
    memcpy(info->uuid, uuid.bytes, sizeof info->uuid);
  }
  char luid[sizeof info->luid];
  unsigned int node_mask = 0;
  /* Only Windows' display driver model knows LUIDs. */
  if (api->DeviceGetLuid != NULL &&
      api->DeviceGetLuid(luid, &node_mask, device->native) == CUDA_SUCCESS) {
    info->has_luid = true;
    memcpy(&info->luid, luid, sizeof info->luid);
  }
}

bool gpu_backend_retain(EpDriverDevice* device, void** native, EpError* error) {
  CUcontext context = NULL;
  bool good = GPU_CALL(device, error, DevicePrimaryCtxRetain, &context, device->native);
  *native = context;
  return good;
}

void gpu_backend_release(GpuContext* context) {
  const DriverApi* api = &context->device->driver->api;
  if (context->graphics) {
    (void)api->CtxDestroy(context->native);
  } else {
    (void)api->DevicePrimaryCtxRelease(context->device->native);
  }
}

bool gpu_enter(GpuContext* context, GpuScope* scope, EpError* error) {
  scope->device = context->device;
  return GPU_CALL(context->device, error, CtxPushCurrent, context->native);
}

bool gpu_leave(GpuScope* scope, bool good) {
  CUcontext popped = NULL;
  (void)scope->device->driver->api.CtxPopCurrent(&popped);
  return good;
}

static bool cuda_has(EpDriverDevice* device, CUdevice_attribute attribute) {
  int value = 0;
  return device->driver->api.DeviceGetAttribute(&value, attribute, device->native) ==
             CUDA_SUCCESS &&
         value != 0;
}

/* Whether the type is Direct3D's, which a GPU under the driver model for computing cannot share. */
static bool cuda_refuses_d3d12(EpDriverDevice* device, bool is_d3d12) {
  return is_d3d12 && cuda_has(device, CU_DEVICE_ATTRIBUTE_TCC_DRIVER);
}

bool gpu_backend_imports_memory(EpDriverDevice* device, const EpHandleType* type) {
  if (type->kind == EP_NATIVE_POINTER) {
    return cuda_has(device, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED) &&
           cuda_has(device, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  }
  return !cuda_refuses_d3d12(
      device, type->driver_type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP ||
                  type->driver_type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE);
}

bool gpu_backend_imports_semaphore(EpDriverDevice* device, const EpHandleType* type) {
  if (type->driver_type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE) {
    return !cuda_refuses_d3d12(device, true);
  }
  return cuda_has(device, CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED);
}

#if ORT_API_VERSION >= 25
static bool cuda_wants_cig(EpDriverDevice* device, const OrtApi* api,
                           const OrtGraphicsInteropConfig* config) {
  const char* option = config->additional_options == NULL
                           ? NULL
                           : api->GetKeyValue(config->additional_options, CUDA_OPTION_CIG);
  return config->graphics_api == ORT_GRAPHICS_API_D3D12 && config->command_queue != NULL &&
         (option == NULL || strcmp(option, "0") != 0) && device->driver->api.CtxCreate != NULL &&
         cuda_has(device, CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED);
}

bool gpu_backend_graphics(EpDriverDevice* device, const OrtApi* api,
                          const OrtGraphicsInteropConfig* config, void** native, EpError* error) {
  *native = NULL;
  if (!cuda_wants_cig(device, api, config)) {
    return true;
  }
  CUctxCigParam cig = {CIG_DATA_TYPE_D3D12_COMMAND_QUEUE, config->command_queue};
  CUctxCreateParams parameters = {NULL, 0, &cig};
  CUcontext context = NULL;
  if (!GPU_CALL(device, error, CtxCreate, &context, &parameters, 0, device->native)) {
    return false;
  }
  /* A new context is current. */
  (void)device->driver->api.CtxPopCurrent(&context);
  *native = context;
  return true;
}
#endif
