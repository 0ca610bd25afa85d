/*
 * Buffers: allocated, imported, or staging for a copy; and the way from an address back to them.
 */
#include <stdlib.h>

#include "vulkan_device.h"

/* Idle staging buffers that a device keeps. */
#define VULKAN_MAX_STAGING 8

VkBufferUsageFlags vulkan_buffer_usage(const EpDriverDevice* device) {
  VkBufferUsageFlags usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                             VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  return device->has_address ? usage | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : usage;
}

static VkMemoryPropertyFlags vulkan_tensor_memory(const EpDriverDevice* device) {
  return device->has_address
             ? VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
             : VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
}

/* The first type among `allowed` that has `wanted`; else the first allowed one, except where the
 * host must see the memory. */
static bool vulkan_memory_type(const EpDriverDevice* device, uint32_t allowed,
                               VkMemoryPropertyFlags wanted, uint32_t* index) {
  bool found = false;
  for (uint32_t i = device->memory.memoryTypeCount; i-- > 0;) {
    VkMemoryPropertyFlags flags = device->memory.memoryTypes[i].propertyFlags;
    bool exact = (flags & wanted) == wanted;
    bool usable = exact || (wanted & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0;
    VkMemoryPropertyFlags best =
        found ? device->memory.memoryTypes[*index].propertyFlags & wanted : 0;
    if ((allowed >> i & 1) != 0 && usable && (!found || exact || best != wanted)) {
      *index = i;
      found = true;
    }
  }
  return found;
}

static void vulkan_buffer_destroy(EpDriverDevice* device, void* object) {
  VulkanBuffer* buffer = object;
  device->vk.vkDestroyBuffer(device->device, buffer->buffer, NULL);
  device->vk.vkFreeMemory(device->device, buffer->memory, NULL);
  free(buffer);
}

/* Which memory types hold the request's handle, as far as Vulkan tells. */
static bool vulkan_import_types(EpDriverDevice* device, const EpMemoryRequest* request,
                                uint32_t* allowed, EpError* error) {
  const EpHandleType* type = request->type;
  VkResult result = VK_SUCCESS;
  if (type->kind == EP_NATIVE_POINTER) {
    VkMemoryHostPointerPropertiesEXT properties = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    result = device->vk.vkGetMemoryHostPointerPropertiesEXT(device->device, type->driver_type,
                                                            request->native.address, &properties);
    *allowed &= properties.memoryTypeBits;
    return result == VK_SUCCESS ||
           vulkan_failed(error, "vkGetMemoryHostPointerPropertiesEXT", result);
  }
  if (type->driver_type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP_BIT ||
      type->driver_type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE_BIT) {
    VkMemoryWin32HandlePropertiesKHR properties = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_WIN32_HANDLE_PROPERTIES_KHR};
    result = device->vk.vkGetMemoryWin32HandlePropertiesKHR(device->device, type->driver_type,
                                                            request->native.handle, &properties);
    *allowed &= properties.memoryTypeBits;
  }
  return result == VK_SUCCESS ||
         vulkan_failed(error, "vkGetMemoryWin32HandlePropertiesKHR", result);
}

static size_t vulkan_import_bytes(const EpDriverDevice* device, const EpMemoryRequest* request) {
  size_t alignment = device->host_pointer_alignment;
  if (request->type->kind != EP_NATIVE_POINTER || request->size_bytes % alignment == 0) {
    return request->size_bytes;
  }
  return request->size_bytes + (alignment - request->size_bytes % alignment);
}

/* What vkAllocateMemory gets: the request's parts, chained. */
typedef struct VulkanAllocation {
  VkMemoryAllocateInfo info;
  VkMemoryAllocateFlagsInfo flags;
  VkMemoryDedicatedAllocateInfo dedicated;
  union {
    VkImportMemoryFdInfoKHR fd;
    VkImportMemoryWin32HandleInfoKHR win32;
    VkImportMemoryHostPointerInfoEXT pointer;
  } native;
} VulkanAllocation;

static void vulkan_chain_native(VulkanAllocation* allocation, const EpMemoryRequest* request,
                                int fd) {
  const void* next = allocation->info.pNext;
  uint32_t type = request->type->driver_type;
  switch (request->type->kind) {
    case EP_NATIVE_FD:
      allocation->native.fd =
          (VkImportMemoryFdInfoKHR){.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                                    .pNext = next,
                                    .handleType = type,
                                    .fd = fd};
      break;
    case EP_NATIVE_WIN32:
      allocation->native.win32 = (VkImportMemoryWin32HandleInfoKHR){
          .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_WIN32_HANDLE_INFO_KHR,
          .pNext = next,
          .handleType = type,
          .handle = request->native.handle};
      break;
    case EP_NATIVE_POINTER:
      allocation->native.pointer = (VkImportMemoryHostPointerInfoEXT){
          .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
          .pNext = next,
          .handleType = type,
          .pHostPointer = request->native.address};
      break;
  }
  allocation->info.pNext = &allocation->native;
}

/* Fills what the import decides: size, memory types and the chain. */
static bool vulkan_prepare_import(EpDriverDevice* device, const EpMemoryRequest* request, int fd,
                                  const VkMemoryDedicatedRequirements* dedicated,
                                  VulkanAllocation* allocation, uint32_t* allowed, EpError* error) {
  size_t given = vulkan_import_bytes(device, request);
  if (allocation->info.allocationSize > given) {
    return ep_fail_argument(error,
                            "size_bytes is %zu, but %s needs allocations of %zu bytes for a "
                            "buffer of that size",
                            request->size_bytes, device->name,
                            (size_t)allocation->info.allocationSize);
  }
  allocation->info.allocationSize = given;
  if (dedicated->requiresDedicatedAllocation != 0 ||
      (device->dedicated_types & request->type->driver_type) != 0) {
    allocation->dedicated.pNext = allocation->info.pNext;
    allocation->info.pNext = &allocation->dedicated;
  }
  vulkan_chain_native(allocation, request, fd);
  return vulkan_import_types(device, request, allowed, error);
}

/* Gives `buffer` memory: new, or what `import` (null for none) names through `fd`. */
static bool vulkan_allocate(EpDriverDevice* device, VulkanBuffer* buffer,
                            VkMemoryPropertyFlags wanted, const EpMemoryRequest* import, int fd,
                            EpError* error) {
  VkBufferMemoryRequirementsInfo2 asked = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = buffer->buffer};
  VkMemoryDedicatedRequirements dedicated = {.sType =
                                                 VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS};
  VkMemoryRequirements2 needed = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2,
                                  .pNext = &dedicated};
  device->vk.vkGetBufferMemoryRequirements2(device->device, &asked, &needed);
  uint32_t allowed = needed.memoryRequirements.memoryTypeBits;
  VulkanAllocation allocation = {
      .info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
               .allocationSize = needed.memoryRequirements.size},
      .flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT},
      .dedicated = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
                    .buffer = buffer->buffer}};
  if (device->has_address) {
    allocation.info.pNext = &allocation.flags;
  }
  if (import != NULL &&
      !vulkan_prepare_import(device, import, fd, &dedicated, &allocation, &allowed, error)) {
    return false;
  }
  if (!vulkan_memory_type(device, allowed, wanted, &allocation.info.memoryTypeIndex)) {
    return ep_fail(error, ORT_EP_FAIL, EP_NAME ": %s has no type of memory for this %s",
                   device->name, import == NULL ? "allocation" : import->type->name);
  }
  VkResult result =
      device->vk.vkAllocateMemory(device->device, &allocation.info, NULL, &buffer->memory);
  if (result != VK_SUCCESS) {
    buffer->memory = NULL;
    return vulkan_failed(error, "vkAllocateMemory", result);
  }
  return true;
}

/* Binds the memory, and finds the addresses. */
static bool vulkan_place(EpDriverDevice* device, VulkanBuffer* buffer, VkMemoryPropertyFlags wanted,
                         EpError* error) {
  const DriverApi* vk = &device->vk;
  VkResult result = vk->vkBindBufferMemory(device->device, buffer->buffer, buffer->memory, 0);
  if (result != VK_SUCCESS) {
    return vulkan_failed(error, "vkBindBufferMemory", result);
  }
  if ((wanted & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0) {
    void* mapping = NULL;
    result = vk->vkMapMemory(device->device, buffer->memory, 0, UINT64_MAX, 0, &mapping);
    if (result != VK_SUCCESS) {
      return vulkan_failed(error, "vkMapMemory", result);
    }
    buffer->mapping = mapping;
    buffer->address = mapping;
  }
  if (device->has_address) {
    VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                      .buffer = buffer->buffer};
    buffer->address = (char*)(uintptr_t)vk->vkGetBufferDeviceAddress(device->device, &info);
  }
  return true;
}

/* A buffer that is in no list yet. `fd` is the driver's if the call succeeds in importing it, which
 * `*consumed` tells. */
static VulkanBuffer* vulkan_buffer_create(EpDriverDevice* device, size_t bytes,
                                          VkMemoryPropertyFlags wanted,
                                          const EpMemoryRequest* import, int fd, bool* consumed,
                                          EpError* error) {
  VulkanBuffer* buffer = calloc(1, sizeof *buffer);
  if (buffer == NULL) {
    (void)vulkan_out_of_memory(error);
    return NULL;
  }
  VkExternalMemoryBufferCreateInfo external = {
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
      .handleTypes = import == NULL ? 0 : import->type->driver_type};
  VkBufferCreateInfo create = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                               .pNext = import == NULL ? NULL : &external,
                               .size = bytes,
                               .usage = vulkan_buffer_usage(device)};
  VkResult result = device->vk.vkCreateBuffer(device->device, &create, NULL, &buffer->buffer);
  if (result != VK_SUCCESS) {
    free(buffer);
    (void)vulkan_failed(error, "vkCreateBuffer", result);
    return NULL;
  }
  buffer->bytes = bytes;
  buffer->external = import != NULL;
  *consumed = vulkan_allocate(device, buffer, wanted, import, fd, error);
  if (!*consumed || !vulkan_place(device, buffer, wanted, error)) {
    vulkan_buffer_destroy(device, buffer);
    return NULL;
  }
  return buffer;
}

static void vulkan_buffer_list(EpDriverDevice* device, VulkanBuffer* buffer) {
  ep_mutex_lock(&device->mutex);
  buffer->next = device->buffers;
  device->buffers = buffer;
  ep_mutex_unlock(&device->mutex);
}

/* Out of the list, so that no new work finds it; destroyed once the work that has found it ends. */
static void vulkan_buffer_release(EpDriverDevice* device, VulkanBuffer* buffer) {
  ep_mutex_lock(&device->mutex);
  VulkanBuffer** link = &device->buffers;
  while (*link != buffer) {
    link = &(*link)->next;
  }
  *link = buffer->next;
  ep_mutex_unlock(&device->mutex);
  vulkan_retire(device, vulkan_buffer_destroy, buffer);
}

VulkanBuffer* vulkan_buffer_at(EpDriverDevice* device, const void* address, size_t bytes) {
  VulkanBuffer* buffer = device->buffers;
  for (; buffer != NULL; buffer = buffer->next) {
    uintptr_t offset = (uintptr_t)address - (uintptr_t)buffer->address;
    if (offset < buffer->bytes && bytes <= buffer->bytes - offset) {
      break;
    }
  }
  return buffer;
}

void* ep_driver_alloc(EpDriverDevice* device, size_t bytes) {
  EpError ignored;
  bool consumed = false;
  VulkanBuffer* buffer = vulkan_device_ready(device, &ignored)
                             ? vulkan_buffer_create(device, bytes, vulkan_tensor_memory(device),
                                                    NULL, -1, &consumed, &ignored)
                             : NULL;
  if (buffer == NULL) {
    return NULL;
  }
  vulkan_buffer_list(device, buffer);
  return buffer->address;
}

void ep_driver_free(EpDriverDevice* device, void* memory) {
  ep_mutex_lock(&device->mutex);
  VulkanBuffer* buffer = device->buffers;
  while (buffer != NULL && (buffer->external || buffer->address != memory)) {
    buffer = buffer->next;
  }
  ep_mutex_unlock(&device->mutex);
  if (buffer != NULL) {
    vulkan_buffer_release(device, buffer);
  }
}

struct EpDriverMemory {
  EpDriverDevice* device;
  VulkanBuffer* buffer;
  size_t offset;
};

bool ep_driver_import_memory(EpDriverDevice* device, const EpMemoryRequest* request,
                             EpDriverMemory** out, EpError* error) {
  *out = NULL;
  if (!vulkan_device_ready(device, error)) {
    return false;
  }
  EpDriverMemory* memory = malloc(sizeof *memory);
  if (memory == NULL) {
    return vulkan_out_of_memory(error);
  }
  /* Vulkan consumes a descriptor before the last step that can fail, so it gets one of its own. */
  bool is_fd = request->type->kind == EP_NATIVE_FD;
  int fd = -1;
  bool consumed = false;
  VulkanBuffer* buffer = NULL;
  if (is_fd && !ep_fd_duplicate(request->native.fd, &fd)) {
    (void)ep_fail(error, ORT_EP_FAIL, EP_NAME ": no file descriptor is left");
  } else {
    buffer = vulkan_buffer_create(device, request->size_bytes, vulkan_tensor_memory(device),
                                  request, fd, &consumed, error);
  }
  if (fd >= 0 && !consumed) {
    ep_fd_close(fd);
  }
  if (buffer == NULL) {
    free(memory);
    return false;
  }
  if (is_fd) {
    ep_fd_close(request->native.fd);
  }
  vulkan_buffer_list(device, buffer);
  *memory = (EpDriverMemory){device, buffer, request->offset_bytes};
  *out = memory;
  return true;
}

void* ep_driver_memory_address(const EpDriverMemory* memory) {
  return memory->buffer->address + memory->offset;
}

void ep_driver_memory_release(EpDriverMemory* memory) {
  vulkan_buffer_release(memory->device, memory->buffer);
  free(memory);
}

VulkanBuffer* vulkan_staging_get(EpDriverDevice* device, size_t bytes, EpError* error) {
  for (VulkanBuffer** link = &device->staging; *link != NULL; link = &(*link)->next) {
    VulkanBuffer* idle = *link;
    if (idle->bytes >= bytes && idle->bytes / 4 <= bytes) {
      *link = idle->next;
      --device->staging_count;
      return idle;
    }
  }
  bool consumed = false;
  return vulkan_buffer_create(
      device, bytes, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
      NULL, -1, &consumed, error);
}

void vulkan_staging_put(EpDriverDevice* device, VulkanBuffer* staging) {
  if (device->staging_count == VULKAN_MAX_STAGING) {
    vulkan_buffer_destroy(device, staging);
  } else {
    staging->next = device->staging;
    device->staging = staging;
    ++device->staging_count;
  }
}

void vulkan_staging_clear(EpDriverDevice* device) {
  while (device->staging != NULL) {
    VulkanBuffer* staging = device->staging;
    device->staging = staging->next;
    vulkan_buffer_destroy(device, staging);
  }
  device->staging_count = 0;
}
