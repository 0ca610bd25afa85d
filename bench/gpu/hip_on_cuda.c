/*
 * The part of HIP that the hip EP uses, forwarded to the CUDA driver: it lets the hip EP run on an
 * NVIDIA GPU. That shows the EP's calls and HIP's own struct layouts at work with a real driver; it says
 * nothing about AMD's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "driver_api.h"

#define MAX_DEVICES 16

static _Thread_local int current_device;

/* Null, with a word on stderr, where the driver or its function is missing. */
static void* find(const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* found = library == NULL ? NULL : dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "hip_on_cuda: %s is missing\n", name);
  }
  return found;
}

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

/* Calls a function of the driver under the name that cuda.h gives its present version, and returns its
 * result: the two APIs' have the same values. */
#define CU(function, ...)                  \
  do {                                     \
    static __typeof__(&function) call;     \
    if (call == NULL) {                    \
      void* found = find(TEXT(function));  \
      if (found == NULL) {                 \
        return hipErrorNotInitialized;     \
      }                                    \
      memcpy(&call, &found, sizeof found); \
    }                                      \
    return (hipError_t)call(__VA_ARGS__);  \
  } while (0)

static hipError_t retain(CUcontext* context, CUdevice device) {
  CU(cuDevicePrimaryCtxRetain, context, device);
}

static hipError_t push(CUcontext context) {
  CU(cuCtxPushCurrent, context);
}

static hipError_t pop(void) {
  CUcontext context = NULL;
  CU(cuCtxPopCurrent, &context);
}

static CUdeviceptr pointer(const void* address) {
  return (CUdeviceptr)(uintptr_t)address;
}

hipError_t hipInit(unsigned int flags) {
  CU(cuInit, flags);
}

hipError_t hipDriverGetVersion(int* version) {
  *version = 60300000;
  return hipSuccess;
}

hipError_t hipGetDeviceCount(int* count) {
  CU(cuDeviceGetCount, count);
}

hipError_t hipDeviceGet(hipDevice_t* device, int ordinal) {
  CU(cuDeviceGet, device, ordinal);
}

hipError_t hipDeviceGetName(char* name, int length, hipDevice_t device) {
  CU(cuDeviceGetName, name, length, device);
}

hipError_t hipDeviceGetPCIBusId(char* name, int length, int device) {
  CU(cuDeviceGetPCIBusId, name, length, device);
}

/* HIP's current device is a device's primary context in CUDA, which stays retained. */
static hipError_t make_current(int device) {
  static CUcontext contexts[MAX_DEVICES];
  if (device < 0 || device >= MAX_DEVICES) {
    return hipErrorInvalidDevice;
  }
  hipError_t result = hipSuccess;
  if (contexts[device] == NULL) {
    result = retain(&contexts[device], device);
  }
  static _Thread_local bool pushed;
  if (result == hipSuccess && pushed) {
    result = pop();
  }
  if (result == hipSuccess) {
    result = push(contexts[device]);
    pushed = result == hipSuccess;
  }
  return result;
}

hipError_t hipGetDevice(int* device) {
  *device = current_device;
  return make_current(current_device);
}

hipError_t hipSetDevice(int device) {
  hipError_t result = make_current(device);
  current_device = result == hipSuccess ? device : current_device;
  return result;
}

hipError_t hipMalloc(void** out, size_t size) {
  CU(cuMemAlloc, (CUdeviceptr*)out, size);
}

hipError_t hipFree(void* address) {
  CU(cuMemFree, pointer(address));
}

hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  if (attribute != hipDeviceAttributeMemoryPoolsSupported) {
    return hipErrorInvalidValue;
  }
  CU(cuDeviceGetAttribute, value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device);
}

hipError_t hipMemPoolCreate(hipMemPool_t* out, const hipMemPoolProps* properties) {
  const CUmemPoolProps wide = {.allocType = (CUmemAllocationType)properties->allocType,
                               .handleTypes = (CUmemAllocationHandleType)properties->handleTypes,
                               .location = {.type = (CUmemLocationType)properties->location.type,
                                            .id = properties->location.id},
                               .win32SecurityAttributes = properties->win32SecurityAttributes};
  CU(cuMemPoolCreate, (CUmemoryPool*)out, &wide);
}

hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void* value) {
  CU(cuMemPoolSetAttribute, (CUmemoryPool)pool, (CUmemPool_attribute)attribute, value);
}

hipError_t hipMemPoolDestroy(hipMemPool_t pool) {
  CU(cuMemPoolDestroy, (CUmemoryPool)pool);
}

hipError_t hipMallocFromPoolAsync(void** out, size_t size, hipMemPool_t pool, hipStream_t stream) {
  CU(cuMemAllocFromPoolAsync, (CUdeviceptr*)out, size, (CUmemoryPool)pool, (CUstream)stream);
}

hipError_t hipFreeAsync(void* address, hipStream_t stream) {
  CU(cuMemFreeAsync, pointer(address), (CUstream)stream);
}

hipError_t hipHostMalloc(void** out, size_t size, unsigned int flags) {
  CU(cuMemHostAlloc, out, size, flags);
}

hipError_t hipHostFree(void* address) {
  CU(cuMemFreeHost, address);
}

hipError_t hipHostRegister(void* address, size_t size, unsigned int flags) {
  CU(cuMemHostRegister, address, size, flags);
}

hipError_t hipHostUnregister(void* address) {
  CU(cuMemHostUnregister, address);
}

hipError_t hipHostGetDevicePointer(void** out, void* host, unsigned int flags) {
  CU(cuMemHostGetDevicePointer, (CUdeviceptr*)out, host, flags);
}

hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned int flags) {
  CU(cuStreamCreate, (CUstream*)stream, flags);
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  CU(cuStreamDestroy, (CUstream)stream);
}

hipError_t hipStreamQuery(hipStream_t stream) {
  CU(cuStreamQuery, (CUstream)stream);
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
  CU(cuStreamSynchronize, (CUstream)stream);
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags) {
  CU(cuStreamWaitEvent, (CUstream)stream, (CUevent)event, flags);
}

hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function_to_call, void* argument) {
  CU(cuLaunchHostFunc, (CUstream)stream, function_to_call, argument);
}

hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  CU(cuEventCreate, (CUevent*)event, flags);
}

hipError_t hipEventDestroy(hipEvent_t event) {
  CU(cuEventDestroy, (CUevent)event);
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  CU(cuEventRecord, (CUevent)event, (CUstream)stream);
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  CU(cuEventSynchronize, (CUevent)event);
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void* from, size_t size, hipStream_t stream) {
  CU(cuMemcpyHtoDAsync, pointer(to), from, size, (CUstream)stream);
}

hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t size, hipStream_t stream) {
  CU(cuMemcpyDtoHAsync, to, pointer(from), size, (CUstream)stream);
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t size,
                              hipStream_t stream) {
  CU(cuMemcpyDtoDAsync, pointer(to), pointer(from), size, (CUstream)stream);
}

hipError_t hipImportExternalMemory(hipExternalMemory_t* out,
                                   const hipExternalMemoryHandleDesc* desc) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC wide = {
      .type = (CUexternalMemoryHandleType)desc->type, .size = desc->size, .flags = desc->flags};
  wide.handle.fd = desc->handle.fd;
  CU(cuImportExternalMemory, (CUexternalMemory*)out, &wide);
}

hipError_t hipExternalMemoryGetMappedBuffer(void** out, hipExternalMemory_t memory,
                                            const hipExternalMemoryBufferDesc* desc) {
  const CUDA_EXTERNAL_MEMORY_BUFFER_DESC wide = {
      .offset = desc->offset, .size = desc->size, .flags = desc->flags};
  CU(cuExternalMemoryGetMappedBuffer, (CUdeviceptr*)out, (CUexternalMemory)memory, &wide);
}

hipError_t hipDestroyExternalMemory(hipExternalMemory_t memory) {
  CU(cuDestroyExternalMemory, (CUexternalMemory)memory);
}

static hipError_t import_semaphore(hipExternalSemaphore_t* out,
                                   const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* wide) {
  CU(cuImportExternalSemaphore, (CUexternalSemaphore*)out, wide);
}

hipError_t hipImportExternalSemaphore(hipExternalSemaphore_t* out,
                                      const hipExternalSemaphoreHandleDesc* desc) {
  CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC wide = {.type = (CUexternalSemaphoreHandleType)desc->type,
                                              .flags = desc->flags};
  wide.handle.fd = desc->handle.fd;
  hipError_t result = import_semaphore(out, &wide);
  /* The EP's probe hands in a descriptor that is none: CUDA knows the type. */
  return result != hipSuccess && desc->handle.fd == -1 ? hipErrorInvalidHandle : result;
}

hipError_t hipSignalExternalSemaphoresAsync(const hipExternalSemaphore_t* semaphores,
                                            const hipExternalSemaphoreSignalParams* parameters,
                                            unsigned int count, hipStream_t stream) {
  if (count != 1) {
    return hipErrorInvalidValue;
  }
  CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS wide = {.flags = parameters->flags};
  wide.params.fence.value = parameters->params.fence.value;
  CU(cuSignalExternalSemaphoresAsync, (const CUexternalSemaphore*)semaphores, &wide, 1,
     (CUstream)stream);
}

hipError_t hipWaitExternalSemaphoresAsync(const hipExternalSemaphore_t* semaphores,
                                          const hipExternalSemaphoreWaitParams* parameters,
                                          unsigned int count, hipStream_t stream) {
  if (count != 1) {
    return hipErrorInvalidValue;
  }
  CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wide = {.flags = parameters->flags};
  wide.params.fence.value = parameters->params.fence.value;
  CU(cuWaitExternalSemaphoresAsync, (const CUexternalSemaphore*)semaphores, &wide, 1,
     (CUstream)stream);
}

hipError_t hipDestroyExternalSemaphore(hipExternalSemaphore_t semaphore) {
  CU(cuDestroyExternalSemaphore, (CUexternalSemaphore)semaphore);
}
