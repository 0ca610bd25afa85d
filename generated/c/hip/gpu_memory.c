#include <stdlib.h>

#include "gpu_device.h"

struct EpDriverMemory {
  GpuContext* context;
  GpuExternalMemory external; /* Null for a host allocation. */
  GpuAddress mapped;          /* Start of the allocation for the device. */
  void* host;                 /* A registered host allocation, or null. */
  size_t offset;              /* From there to the region. */
};

static bool gpu_is_pooled(const GpuContext* context) {
  return context->device->pooled && !context->graphics;
}

static void gpu_memory_free(GpuContext* context, void* object) {
  EpDriverDevice* device = context->device;
  GpuAddress address = (GpuAddress)(uintptr_t)object;
  if (gpu_is_pooled(context)) {
    (void)device->driver->api.MemFreeAsync(address, device->pool.frees);
  } else {
    (void)device->driver->api.MemFree(address);
  }
}

void* ep_driver_alloc(EpDriverDevice* device, size_t bytes) {
  EpError ignored;
  GpuScope scope;
  GpuContext* context = gpu_context_begin(device, false, &scope, &ignored);
  if (context == NULL) {
    return NULL;
  }
  GpuAddress address = 0;
  bool good = gpu_is_pooled(context) ? gpu_pool_alloc(device, bytes, &address, &ignored)
                                     : GPU_CALL(device, &ignored, MemAlloc, &address, bytes);
  if (!gpu_context_end(context, &scope, good)) {
    return NULL;
  }
  void* memory = (void*)(uintptr_t)address;
  if (!ep_registry_add(&device->allocations, memory, (uintptr_t)context)) {
    gpu_retire(context, gpu_memory_free, memory);
    return NULL;
  }
  return memory;
}

void ep_driver_free(EpDriverDevice* device, void* memory) {
  EpError ignored;
  GpuScope scope;
  uintptr_t value = 0;
  if (!ep_registry_remove(&device->allocations, memory, &value)) {
    return;
  }
  GpuContext* context = (GpuContext*)value;
  bool freed = false;
  if (gpu_is_pooled(context) && gpu_enter_to_release(context, &scope)) {
    freed = gpu_stream_follow(device, device->pool.frees, &ignored);
    if (freed) {
      gpu_memory_free(context, memory);
    }
    (void)gpu_context_end(context, &scope, !freed);
  }
  if (!freed) {
    gpu_retire(context, gpu_memory_free, memory);
  }
}

bool ep_driver_can_import_memory(EpDriverDevice* device, const EpHandleType* type) {
  return gpu_backend_imports_memory(device, type);
}

/* Imports and maps; the native handle is the driver's on success, and the caller's otherwise. */
static bool gpu_memory_map(EpDriverMemory* memory, const EpMemoryRequest* request,
                           EpNativeHandle native, EpError* error) {
  EpDriverDevice* device = memory->context->device;
  GpuMemoryHandleDesc handle = {0};
  handle.type = (GpuMemoryHandleType)request->type->driver_type;
  handle.size = request->size_bytes;
  handle.flags = request->type->dedicated ? GPU_MEMORY_DEDICATED : 0;
  GPU_SET_HANDLE(&handle, request->type, native);
  GpuMemoryBufferDesc buffer = {0};
  /* The whole allocation: a region of no bytes could not be mapped. */
  buffer.size = request->size_bytes;
  if (!GPU_CALL(device, error, ImportExternalMemory, &memory->external, &handle)) {
    return false;
  }
  if (!GPU_CALL(device, error, ExternalMemoryGetMappedBuffer, &memory->mapped, memory->external,
                &buffer)) {
    (void)device->driver->api.DestroyExternalMemory(memory->external);
    return false;
  }
  return true;
}

/* As gpu_memory_map(), for a descriptor. The driver consumes one on import, even if mapping then
 * fails, so it gets a duplicate of its own. */
static bool gpu_memory_map_fd(EpDriverMemory* memory, const EpMemoryRequest* request,
                              EpError* error) {
  EpNativeHandle copy;
  if (!ep_fd_duplicate(request->native.fd, &copy.fd)) {
    return ep_fail(error, ORT_FAIL, EP_NAME ": no file descriptor left");
  }
  bool good = gpu_memory_map(memory, request, copy, error);
  if (good) {
    ep_fd_close(request->native.fd);
  } else if (memory->external == NULL) {
    ep_fd_close(copy.fd);
  }
  return good;
}

static bool gpu_memory_register(EpDriverMemory* memory, const EpMemoryRequest* request,
                                EpError* error) {
  EpDriverDevice* device = memory->context->device;
  void* host = request->native.address;
  if (!GPU_CALL(device, error, HostRegister, host, request->size_bytes,
                GPU_HOST_REGISTER_MAPPED | GPU_HOST_REGISTER_PORTABLE)) {
    return false;
  }
  memory->host = host;
  return GPU_CALL(device, error, HostGetDevicePointer, &memory->mapped, host, 0);
}

bool ep_driver_import_memory(EpDriverDevice* device, const EpMemoryRequest* request,
                             EpDriverMemory** out, EpError* error) {
  *out = NULL;
  GpuScope scope;
  EpDriverMemory* memory = gpu_object_begin(device, false, sizeof *memory, &scope, error);
  if (memory == NULL) {
    return false;
  }
  memory->offset = request->offset_bytes;
  bool good = false;
  switch (request->type->kind) {
    case EP_NATIVE_FD:
      good = gpu_memory_map_fd(memory, request, error);
      break;
    case EP_NATIVE_WIN32:
      good = gpu_memory_map(memory, request, request->native, error);
      break;
    case EP_NATIVE_POINTER:
      good = gpu_memory_register(memory, request, error);
      break;
  }
  bool registered = memory->host != NULL;
  *out = gpu_object_end(memory, &scope, good || registered);
  if (!good && registered) {
    ep_driver_memory_release(*out);
    *out = NULL;
  }
  return good;
}

void* ep_driver_memory_address(const EpDriverMemory* memory) {
  return (char*)(uintptr_t)memory->mapped + memory->offset;
}

static void gpu_memory_unmap(GpuContext* context, void* object) {
  EpDriverMemory* memory = object;
  DriverApi* api = &context->device->driver->api;
  if (memory->host != NULL) {
    (void)api->HostUnregister(memory->host);
  } else {
    /* The mapping lies in the imported object, so it goes first. */
    (void)api->MemFree(memory->mapped);
    (void)api->DestroyExternalMemory(memory->external);
  }
  free(memory);
}

void ep_driver_memory_release(EpDriverMemory* memory) {
  gpu_retire(memory->context, gpu_memory_unmap, memory);
}
