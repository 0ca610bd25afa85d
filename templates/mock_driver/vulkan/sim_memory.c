/* Memory and buffers. */
#include <stdlib.h>

#include "sim_vulkan.h"

#define SIM_ALIGNMENT 256
#define SIM_HOST_ALIGNMENT 4096

VkResult sim_vkCreateBuffer(VkDevice device, const VkBufferCreateInfo* info,
                            const VkAllocationCallbacks* allocator, VkBuffer* out) {
  (void)device;
  (void)allocator;
  SimBuffer* buffer = calloc(1, sizeof *buffer);
  if (buffer == NULL) {
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  if (info->size == 0) {
    mock_offend("vkCreateBuffer: size is 0");
  }
  const VkExternalMemoryBufferCreateInfo* external =
      sim_chained(info->pNext, VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  buffer->bytes = (size_t)info->size;
  buffer->external = external == NULL ? 0 : external->handleTypes;
  atomic_init(&buffer->pending, 0);
  mock_object_add("buffer", buffer, sizeof *buffer);
  *out = (VkBuffer)buffer;
  return VK_SUCCESS;
}

void sim_vkDestroyBuffer(VkDevice device, VkBuffer native, const VkAllocationCallbacks* allocator) {
  (void)device;
  (void)allocator;
  SimBuffer* buffer = (SimBuffer*)native;
  if (buffer == NULL || !mock_object_remove("buffer", buffer)) {
    return;
  }
  if (sim_is_used(&buffer->pending)) {
    mock_offend("vkDestroyBuffer: a submission still uses it");
  }
  free(buffer);
}

void sim_vkGetBufferMemoryRequirements2(VkDevice device,
                                        const VkBufferMemoryRequirementsInfo2* info,
                                        VkMemoryRequirements2* requirements) {
  (void)device;
  const SimBuffer* buffer = (const SimBuffer*)info->buffer;
  VkMemoryRequirements* found = &requirements->memoryRequirements;
  found->size = buffer->external != 0
                    ? buffer->bytes
                    : (buffer->bytes + SIM_ALIGNMENT - 1) / SIM_ALIGNMENT * SIM_ALIGNMENT;
  found->alignment = SIM_ALIGNMENT;
  found->memoryTypeBits = 3;
  VkMemoryDedicatedRequirements* dedicated = (VkMemoryDedicatedRequirements*)(uintptr_t)sim_chained(
      requirements->pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS);
  if (dedicated != NULL) {
    dedicated->prefersDedicatedAllocation = 0;
    dedicated->requiresDedicatedAllocation = 0;
  }
}

static const char* sim_memory_kind(const SimMemory* memory) {
  return memory->is_owned ? "memory" : "external memory";
}

static bool sim_open_share(SimMemory* memory, intptr_t native, bool consumed) {
  if (!mock_share_open(&memory->share, native, consumed, memory->bytes)) {
    return false;
  }
  memory->data = mock_map(native, memory->bytes);
  memory->is_shared = memory->data != NULL;
  return memory->is_shared;
}

static VkResult sim_back(SimMemory* memory, const VkMemoryAllocateInfo* info) {
  const VkImportMemoryFdInfoKHR* fd =
      sim_chained(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
  const VkImportMemoryWin32HandleInfoKHR* win32 =
      sim_chained(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_WIN32_HANDLE_INFO_KHR);
  const VkImportMemoryHostPointerInfoEXT* pointer =
      sim_chained(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  bool dedicated =
      sim_chained(info->pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO) != NULL;
  if (fd != NULL) {
    return sim_open_share(memory, fd->fd, true) ? VK_SUCCESS : VK_ERROR_INVALID_EXTERNAL_HANDLE;
  }
  if (win32 != NULL) {
    bool resource = win32->handleType == VK_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE_BIT;
    bool heap = win32->handleType == VK_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP_BIT;
    if ((resource && !dedicated) || (heap && dedicated) || win32->name != NULL) {
      mock_offend("vkAllocateMemory: type %u, dedicated %d, name %s", (unsigned)win32->handleType,
                  (int)dedicated, win32->name == NULL ? "none" : "given");
    }
    return sim_open_share(memory, (intptr_t)win32->handle, false)
               ? VK_SUCCESS
               : VK_ERROR_INVALID_EXTERNAL_HANDLE;
  }
  if (pointer != NULL) {
    if ((uintptr_t)pointer->pHostPointer % SIM_HOST_ALIGNMENT != 0 ||
        memory->bytes % SIM_HOST_ALIGNMENT != 0) {
      mock_offend("vkAllocateMemory: %zu bytes at a host pointer are not aligned", memory->bytes);
    }
    memory->data = pointer->pHostPointer;
    return VK_SUCCESS;
  }
  memory->is_owned = memory->bytes <= (size_t)mock_option("largest_allocation", 1L << 30);
  memory->data = memory->is_owned ? ep_aligned_alloc(SIM_ALIGNMENT, memory->bytes) : NULL;
  return memory->data == NULL ? VK_ERROR_OUT_OF_DEVICE_MEMORY : VK_SUCCESS;
}

VkResult sim_vkAllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info,
                              const VkAllocationCallbacks* allocator, VkDeviceMemory* out) {
  (void)device;
  (void)allocator;
  if (info->memoryTypeIndex > 1) {
    mock_offend("vkAllocateMemory: there is no memory type %u", (unsigned)info->memoryTypeIndex);
  }
  SimMemory* memory = calloc(1, sizeof *memory);
  if (memory == NULL) {
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  memory->bytes = (size_t)info->allocationSize;
  VkResult result = sim_back(memory, info);
  if (result != VK_SUCCESS) {
    free(memory);
    return result;
  }
  mock_object_add(sim_memory_kind(memory), memory, sizeof *memory);
  *out = (VkDeviceMemory)memory;
  return VK_SUCCESS;
}

void sim_vkFreeMemory(VkDevice device, VkDeviceMemory native,
                      const VkAllocationCallbacks* allocator) {
  (void)device;
  (void)allocator;
  SimMemory* memory = (SimMemory*)native;
  if (memory == NULL || !mock_object_remove(sim_memory_kind(memory), memory)) {
    return;
  }
  if (memory->is_shared) {
    mock_unmap(memory->data, memory->bytes);
    mock_share_close(&memory->share);
  } else if (memory->is_owned) {
    ep_aligned_free(memory->data);
  }
  free(memory);
}

VkResult sim_vkMapMemory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset,
                         VkDeviceSize size, VkMemoryMapFlags flags, void** data) {
  (void)device;
  (void)size;
  (void)flags;
  *data = ((SimMemory*)memory)->data + offset;
  return VK_SUCCESS;
}

VkResult sim_vkBindBufferMemory(VkDevice device, VkBuffer native, VkDeviceMemory memory,
                                VkDeviceSize offset) {
  (void)device;
  SimBuffer* buffer = (SimBuffer*)native;
  if (buffer->memory != NULL || offset != 0 || buffer->bytes > ((SimMemory*)memory)->bytes) {
    mock_offend("vkBindBufferMemory: bound twice, or past the end of the memory");
  }
  buffer->memory = (SimMemory*)memory;
  return VK_SUCCESS;
}

VkDeviceAddress sim_vkGetBufferDeviceAddress(VkDevice device,
                                             const VkBufferDeviceAddressInfo* info) {
  (void)device;
  if (mock_option("device_address", 1) == 0) {
    mock_offend("vkGetBufferDeviceAddress: the device has no addresses");
  }
  return (VkDeviceAddress)(uintptr_t)((SimBuffer*)info->buffer)->memory->data;
}

VkResult sim_vkGetMemoryHostPointerPropertiesEXT(VkDevice device,
                                                 VkExternalMemoryHandleTypeFlagBits type,
                                                 const void* pointer,
                                                 VkMemoryHostPointerPropertiesEXT* properties) {
  (void)device;
  (void)pointer;
  if (type != VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT) {
    mock_offend("vkGetMemoryHostPointerPropertiesEXT: type is %u", (unsigned)type);
  }
  properties->memoryTypeBits = 2;
  return VK_SUCCESS;
}

VkResult sim_vkGetMemoryWin32HandlePropertiesKHR(VkDevice device,
                                                 VkExternalMemoryHandleTypeFlagBits type,
                                                 void* handle,
                                                 VkMemoryWin32HandlePropertiesKHR* properties) {
  (void)device;
  (void)handle;
  if (type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_BIT) {
    mock_offend("vkGetMemoryWin32HandlePropertiesKHR: opaque handles have no properties");
  }
  properties->memoryTypeBits = 3;
  return VK_SUCCESS;
}
