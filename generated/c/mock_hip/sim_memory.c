#include <stdlib.h>
#include <string.h>

#include "ep_platform.h"
#include "mock_share.h"
#include "sim_stream.h"

#define SIM_ALIGNMENT 256

typedef struct SimExternalMemory {
  MockShare share;
  size_t bytes;
  void* mapped; /* Null again when the buffer is freed. */
} SimExternalMemory;

static void* sim_pointer(GpuAddress address) {
  return (void*)(uintptr_t)address;
}

GpuResult sim_allocate(GpuAddress* out, size_t bytes, const char* call) {
  if (!sim_has_context(call)) {
    return SIM_INVALID_CONTEXT;
  }
  if (bytes == 0 || bytes > (size_t)mock_option("largest_allocation", 1L << 30)) {
    return bytes == 0 ? SIM_INVALID_VALUE : SIM_OUT_OF_MEMORY;
  }
  void* memory = ep_aligned_alloc(SIM_ALIGNMENT, bytes);
  if (memory == NULL) {
    return SIM_OUT_OF_MEMORY;
  }
  mock_object_add("memory", memory, bytes);
  *out = (GpuAddress)(uintptr_t)memory;
  return GPU_SUCCESS;
}

GpuResult sim_MemAlloc(GpuAddress* out, size_t bytes) {
  return sim_allocate(out, bytes, "MemAlloc");
}

GpuResult sim_MemFree(GpuAddress address) {
  void* memory = sim_pointer(address);
  size_t owner = 0;
  if (!sim_has_context("MemFree")) {
    return SIM_INVALID_CONTEXT;
  }
  sim_block("MemFree");
  if (mock_object_find("pool memory", memory, NULL)) {
    mock_offend("MemFree: memory %p is a pool's", memory);
    (void)mock_object_remove("pool memory", memory);
  }
  /* A mapped buffer is freed like an allocation, but its external memory keeps the pages. The
   * object's size is its owner's address. */
  if (mock_object_find("mapping", memory, &owner)) {
    SimExternalMemory* external = (SimExternalMemory*)(uintptr_t)owner;
    size_t bytes = external->bytes;
    external->mapped = NULL;
    (void)mock_object_remove("mapping", memory);
    mock_unmap(memory, bytes);
    return GPU_SUCCESS;
  }
  if (!mock_object_remove("memory", memory)) {
    return SIM_INVALID_VALUE;
  }
  ep_aligned_free(memory);
  return GPU_SUCCESS;
}

GpuResult sim_HostAlloc(void** out, size_t bytes, unsigned int flags) {
  (void)flags;
  if (!sim_has_context("HostAlloc")) {
    return SIM_INVALID_CONTEXT;
  }
  if (!sim_context_lasts()) {
    mock_offend("HostAlloc: the memory goes when its context does");
  }
  void* memory = ep_aligned_alloc(SIM_ALIGNMENT, bytes);
  if (memory == NULL) {
    return SIM_OUT_OF_MEMORY;
  }
  mock_object_add("host memory", memory, bytes);
  *out = memory;
  return GPU_SUCCESS;
}

GpuResult sim_HostFree(void* memory) {
  if (!sim_has_context("HostFree") || !mock_object_remove("host memory", memory)) {
    return SIM_INVALID_VALUE;
  }
  sim_block("HostFree");
  ep_aligned_free(memory);
  return GPU_SUCCESS;
}

GpuResult sim_HostRegister(void* memory, size_t bytes, unsigned int flags) {
  if (!sim_has_context("HostRegister")) {
    return SIM_INVALID_CONTEXT;
  }
  if ((flags & GPU_HOST_REGISTER_MAPPED) == 0) {
    mock_offend("HostRegister: flags are %u: the memory is not mapped for the device", flags);
  }
  if (mock_object_contains("registration", memory)) {
    return SIM_ALREADY_REGISTERED;
  }
  mock_object_add("registration", memory, bytes);
  return GPU_SUCCESS;
}

GpuResult sim_HostUnregister(void* memory) {
  if (!sim_has_context("HostUnregister") || !mock_object_remove("registration", memory)) {
    return SIM_INVALID_VALUE;
  }
  sim_block("HostUnregister");
  return GPU_SUCCESS;
}

GpuResult sim_HostGetDevicePointer(GpuAddress* out, void* memory, unsigned int flags) {
  if (!sim_has_context("HostGetDevicePointer") || flags != 0 ||
      !mock_object_contains("registration", memory)) {
    return SIM_INVALID_VALUE;
  }
  *out = (GpuAddress)(uintptr_t)memory;
  return GPU_SUCCESS;
}

static bool sim_is_descriptor(unsigned type) {
  return type == 1 || type == 9;
}

GpuResult sim_ImportExternalMemory(GpuExternalMemory* out, const GpuMemoryHandleDesc* desc) {
  if (!sim_has_context("ImportExternalMemory")) {
    return SIM_INVALID_CONTEXT;
  }
  unsigned type = (unsigned)desc->type;
  bool dedicated = (desc->flags & GPU_MEMORY_DEDICATED) != 0;
  /* Direct3D's resources are dedicated allocations, its heaps are not. */
  if ((type == 5 && !dedicated) || (type == 4 && dedicated) || desc->flags > 1) {
    mock_offend("ImportExternalMemory: flags are %u for type %u", desc->flags, type);
    return SIM_INVALID_VALUE;
  }
  if (!sim_is_descriptor(type) && desc->handle.win32.name != NULL) {
    mock_offend("ImportExternalMemory: both a handle and a name are given");
  }
  intptr_t native = sim_is_descriptor(type) ? desc->handle.fd : (intptr_t)desc->handle.win32.handle;
  SimExternalMemory* memory = calloc(1, sizeof *memory);
  if (memory == NULL) {
    return SIM_OUT_OF_MEMORY;
  }
  if (!mock_share_open(&memory->share, native, sim_is_descriptor(type), (size_t)desc->size)) {
    free(memory);
    return SIM_INVALID_HANDLE;
  }
  memory->bytes = (size_t)desc->size;
  mock_object_add("external memory", memory, sizeof *memory);
  *out = (GpuExternalMemory)memory;
  return GPU_SUCCESS;
}

GpuResult sim_ExternalMemoryGetMappedBuffer(GpuAddress* out, GpuExternalMemory native,
                                            const GpuMemoryBufferDesc* desc) {
  SimExternalMemory* memory = (SimExternalMemory*)native;
  if (!sim_has_context("ExternalMemoryGetMappedBuffer") ||
      !mock_object_find("external memory", memory, NULL)) {
    return SIM_INVALID_HANDLE;
  }
  if (desc->flags != 0 || desc->size == 0 || desc->offset > memory->bytes ||
      desc->size > memory->bytes - desc->offset) {
    mock_offend("ExternalMemoryGetMappedBuffer: %llu bytes at %llu of %zu", desc->size,
                desc->offset, memory->bytes);
    return SIM_INVALID_VALUE;
  }
  if (memory->mapped != NULL) {
    mock_offend("ExternalMemoryGetMappedBuffer: mapped twice");
  }
  memory->mapped = mock_map(memory->share.native, memory->bytes);
  if (memory->mapped == NULL) {
    return SIM_OUT_OF_MEMORY;
  }
  mock_object_add("mapping", memory->mapped, (size_t)(uintptr_t)memory);
  *out = (GpuAddress)(uintptr_t)memory->mapped;
  return GPU_SUCCESS;
}

GpuResult sim_DestroyExternalMemory(GpuExternalMemory native) {
  SimExternalMemory* memory = (SimExternalMemory*)native;
  if (!sim_has_context("DestroyExternalMemory") || !mock_object_remove("external memory", memory)) {
    return SIM_INVALID_HANDLE;
  }
  if (memory->mapped != NULL) {
    mock_offend("DestroyExternalMemory: its buffer is still mapped");
  }
  mock_share_close(&memory->share);
  free(memory);
  return GPU_SUCCESS;
}
