/* What the simulation of CUDA has of its own: contexts and attributes. */
#include <stdlib.h>
#include <string.h>

#include "sim_gpu.h"

#define SIM_STACK_CAPACITY 16

/* The contexts that are current on this thread, the innermost last. */
static _Thread_local CUcontext sim_stack[SIM_STACK_CAPACITY];
static _Thread_local size_t sim_depth;

/* Contexts are told apart by their addresses; these are the devices' primary ones. */
static char sim_primary[SIM_MAX_DEVICES];

static bool sim_is_context(CUcontext context, const char* call) {
  bool exists = mock_object_find("context", context, NULL);
  if (!exists) {
    mock_offend("%s: context %p is not alive", call, (void*)context);
  }
  return exists;
}

bool sim_has_context(const char* call) {
  if (sim_depth == 0) {
    mock_offend("%s: no context is current", call);
    return false;
  }
  return sim_is_context(sim_stack[sim_depth - 1], call);
}

static uintptr_t sim_primary_index(void) {
  return (uintptr_t)sim_stack[sim_depth - 1] - (uintptr_t)sim_primary;
}

int sim_current_device(void) {
  /* Contexts that are not primary ones hold their device. */
  return sim_context_lasts() ? (int)sim_primary_index()
                             : *(const char*)(void*)sim_stack[sim_depth - 1];
}

bool sim_context_lasts(void) {
  return sim_primary_index() < SIM_MAX_DEVICES;
}

CUresult sim_DevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  if (device < 0 || device >= sim_device_count() || device >= SIM_MAX_DEVICES) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  mock_object_add("context", &sim_primary[device], 1);
  *out = (CUcontext)(void*)&sim_primary[device];
  return CUDA_SUCCESS;
}

CUresult sim_DevicePrimaryCtxRelease(CUdevice device) {
  return mock_object_remove("context", &sim_primary[device]) ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sim_CtxPushCurrent(CUcontext context) {
  if (!sim_is_context(context, "CtxPushCurrent") || sim_depth == SIM_STACK_CAPACITY) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  sim_stack[sim_depth++] = context;
  mock_count_context(1);
  return CUDA_SUCCESS;
}

CUresult sim_CtxPopCurrent(CUcontext* out) {
  if (sim_depth == 0) {
    mock_offend("CtxPopCurrent: no context is current");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *out = sim_stack[--sim_depth];
  mock_count_context(-1);
  return CUDA_SUCCESS;
}

CUresult sim_CtxCreate(CUcontext* out, CUctxCreateParams* parameters, unsigned int flags,
                       CUdevice device) {
  (void)flags;
  if (parameters->execAffinityParams != NULL || parameters->cigParams == NULL ||
      parameters->cigParams->sharedDataType != CIG_DATA_TYPE_D3D12_COMMAND_QUEUE ||
      parameters->cigParams->sharedData == NULL) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  char* context = calloc(1, 1);
  if (context == NULL) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *context = (char)device;
  mock_object_add("context", context, 1);
  *out = (CUcontext)(void*)context;
  return sim_CtxPushCurrent(*out);
}

CUresult sim_CtxDestroy(CUcontext context) {
  if (!mock_object_remove("context", context)) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  free(context);
  return CUDA_SUCCESS;
}

CUresult sim_DeviceGetUuid(CUuuid* uuid, CUdevice device) {
  memset(uuid->bytes, 0x40 + device, sizeof uuid->bytes);
  return CUDA_SUCCESS;
}

CUresult sim_DeviceGetLuid(char* luid, unsigned int* node_mask, CUdevice device) {
  if (mock_option("luid", 0) == 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  memset(luid, 0, 8);
  luid[0] = (char)(mock_option("luid", 0) + device);
  *node_mask = 1;
  return CUDA_SUCCESS;
}

CUresult sim_DeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
      *value = (int)mock_option("host_register", 1);
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_TCC_DRIVER:
      *value = (int)mock_option("tcc", 0);
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED:
      *value = (int)mock_option("timeline", 1);
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      *value = (int)mock_option("pools", 1);
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED:
      *value = (int)mock_option("cig", 1);
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

static void* sim_pointer(CUdeviceptr address) {
  return (void*)(uintptr_t)address;
}

CUresult sim_MemcpyHtoDAsync(CUdeviceptr destination, const void* source, size_t bytes,
                             CUstream stream) {
  return sim_copy(sim_pointer(destination), source, bytes, source, stream);
}

CUresult sim_MemcpyDtoHAsync(void* destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return sim_copy(destination, sim_pointer(source), bytes, destination, stream);
}

CUresult sim_MemcpyDtoDAsync(CUdeviceptr destination, CUdeviceptr source, size_t bytes,
                             CUstream stream) {
  return sim_copy(sim_pointer(destination), sim_pointer(source), bytes, NULL, stream);
}
