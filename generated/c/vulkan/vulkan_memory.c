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

static void vulkan_buffer_destroy(VulkanBuffer* buffer) {
  EpDriverDevice* device = buffer->device;
  device->vk.vkDestroyBuffer(device->device, buffer->buffer, NULL);
  device->vk.vkFreeMemory(device->device, buffer->memory, NULL);
  free(buffer);
}

void vulkan_buffer_retired(EpRetirement* buffer) {
  vulkan_buffer_destroy((VulkanBuffer*)buffer);
}

/* Which memory types hold the request's handle, as far as Vulkan tells. */
static bool vulkan_import_types(EpDriverDevice* device, const EpMemoryRequest* request,
                                uint32_t* allowed, EpError* error) {
  const DriverApi* vk = &device->vk;
  const EpHandleType* type = request->type;
  if (type->kind == EP_NATIVE_POINTER) {
    VkMemoryHostPointerPropertiesEXT properties = {DRIVER_INIT(VkMemoryHostPointerPropertiesEXT)};
    bool good = DRIVER_TRY(vk, error, vkGetMemoryHostPointerPropertiesEXT, device->device,
                           type->driver_type, request->native.address, &properties);
    *allowed &= properties.memoryTypeBits;
    return good;
  }
  if (type->driver_type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP_BIT ||
      type->driver_type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE_BIT) {
    VkMemoryWin32HandlePropertiesKHR properties = {DRIVER_INIT(VkMemoryWin32HandlePropertiesKHR)};
    bool good = DRIVER_TRY(vk, error, vkGetMemoryWin32HandlePropertiesKHR, device->device,
                           type->driver_type, request->native.handle, &properties);
    *allowed &= properties.memoryTypeBits;
    return good;
  }
  return true;
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

static void vulkan_chain_native(VulkanAllocation* allocation, const EpMemoryRequest* request) {
  const void* next = allocation->info.pNext;
  uint32_t type = request->type->driver_type;
  switch (request->type->kind) {
    case EP_NATIVE_FD:
      allocation->native.fd =
          (VkImportMemoryFdInfoKHR){DRIVER_INIT(VkImportMemoryFdInfoKHR), .pNext = next,
                                    .handleType = type, .fd = request->native.fd};
      break;
    case EP_NATIVE_WIN32:
      allocation->native.win32 = (VkImportMemoryWin32HandleInfoKHR){
          DRIVER_INIT(VkImportMemoryWin32HandleInfoKHR), .pNext = next, .handleType = type,
          .handle = request->native.handle};
      break;
    case EP_NATIVE_POINTER:
      allocation->native.pointer = (VkImportMemoryHostPointerInfoEXT){
          DRIVER_INIT(VkImportMemoryHostPointerInfoEXT), .pNext = next, .handleType = type,
          .pHostPointer = request->native.address};
      break;
  }
  allocation->info.pNext = &allocation->native;
}

/* Fills what the import decides: size, memory types and the chain. */
static bool vulkan_prepare_import(EpDriverDevice* device, const EpMemoryRequest* request,
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
  vulkan_chain_native(allocation, request);
  return vulkan_import_types(device, request, allowed, error);
}

/* Gives `buffer` memory: new, or what `import` (null for none) names. */
static bool vulkan_allocate(EpDriverDevice* device, VulkanBuffer* buffer,
                            VkMemoryPropertyFlags wanted, const EpMemoryRequest* import,
                            EpError* error) {
  VkBufferMemoryRequirementsInfo2 asked = {DRIVER_INIT(VkBufferMemoryRequirementsInfo2),
                                           .buffer = buffer->buffer};
  VkMemoryDedicatedRequirements dedicated = {DRIVER_INIT(VkMemoryDedicatedRequirements)};
  VkMemoryRequirements2 needed = {DRIVER_INIT(VkMemoryRequirements2), .pNext = &dedicated};
  device->vk.vkGetBufferMemoryRequirements2(device->device, &asked, &needed);
  uint32_t allowed = needed.memoryRequirements.memoryTypeBits;
  VulkanAllocation allocation = {
      .info = {DRIVER_INIT(VkMemoryAllocateInfo), .allocationSize = needed.memoryRequirements.size},
      .flags = {DRIVER_INIT(VkMemoryAllocateFlagsInfo),
                .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT},
      .dedicated = {DRIVER_INIT(VkMemoryDedicatedAllocateInfo), .buffer = buffer->buffer}};
  if (device->has_address) {
    allocation.info.pNext = &allocation.flags;
  }
  if (import != NULL &&
      !vulkan_prepare_import(device, import, &dedicated, &allocation, &allowed, error)) {
    return false;
  }
  if (!vulkan_memory_type(device, allowed, wanted, &allocation.info.memoryTypeIndex)) {
    return ep_fail(error, ORT_EP_FAIL, EP_NAME ": %s has no type of memory for this %s",
                   device->name, import == NULL ? "allocation" : import->type->name);
  }
  if (!DRIVER_TRY(&device->vk, error, vkAllocateMemory, device->device, &allocation.info, NULL,
                  &buffer->memory)) {
    buffer->memory = NULL;
    return false;
  }
  if (import != NULL) {
    *import->consumed = import->type->kind == EP_NATIVE_FD;
  }
  return true;
}

/* Binds the memory, and finds the addresses. */
static bool vulkan_place(EpDriverDevice* device, VulkanBuffer* buffer, VkMemoryPropertyFlags wanted,
                         EpError* error) {
  const DriverApi* vk = &device->vk;
  if (!DRIVER_TRY(vk, error, vkBindBufferMemory, device->device, buffer->buffer, buffer->memory,
                  0)) {
    return false;
  }
  if ((wanted & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0) {
    void* mapping = NULL;
    if (!DRIVER_TRY(vk, error, vkMapMemory, device->device, buffer->memory, 0, UINT64_MAX, 0,
                    &mapping)) {
      return false;
    }
    buffer->mapping = mapping;
    buffer->range.address = mapping;
  }
  if (device->has_address) {
    VkBufferDeviceAddressInfo info = {DRIVER_INIT(VkBufferDeviceAddressInfo),
                                      .buffer = buffer->buffer};
    buffer->range.address = (char*)(uintptr_t)vk->vkGetBufferDeviceAddress(device->device, &info);
  }
  return true;
}

/* A buffer that is in no set yet. */
static VulkanBuffer* vulkan_buffer_create(EpDriverDevice* device, size_t bytes,
                                          VkMemoryPropertyFlags wanted,
                                          const EpMemoryRequest* import, EpError* error) {
  VulkanBuffer* buffer = calloc(1, sizeof *buffer);
  if (buffer == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  VkExternalMemoryBufferCreateInfo external = {
      DRIVER_INIT(VkExternalMemoryBufferCreateInfo),
      .handleTypes = import == NULL ? 0 : import->type->driver_type};
  VkBufferCreateInfo create = {DRIVER_INIT(VkBufferCreateInfo),
                               .pNext = import == NULL ? NULL : &external, .size = bytes,
                               .usage = vulkan_buffer_usage(device)};
  if (!DRIVER_TRY(&device->vk, error, vkCreateBuffer, device->device, &create, NULL,
                  &buffer->buffer)) {
    free(buffer);
    return NULL;
  }
  buffer->device = device;
  buffer->range.bytes = bytes;
  buffer->external = import != NULL;
  if (!vulkan_allocate(device, buffer, wanted, import, error) ||
      !vulkan_place(device, buffer, wanted, error)) {
    vulkan_buffer_destroy(buffer);
    return NULL;
  }
  return buffer;
}

/* The same for a tensor's memory, in the device's set; null on failure. */
static VulkanBuffer* vulkan_buffer_add(EpDriverDevice* device, size_t bytes,
                                       const EpMemoryRequest* import, EpError* error) {
  VulkanBuffer* buffer =
      vulkan_device_ready(device, error)
          ? vulkan_buffer_create(device, bytes, vulkan_tensor_memory(device), import, error)
          : NULL;
  if (buffer != NULL) {
    ep_mutex_lock(&device->mutex);
    ep_range_add(&device->buffers, &buffer->range);
    ep_mutex_unlock(&device->mutex);
  }
  return buffer;
}

/* Out of the set, so that no new work finds it; destroyed once the work that has found it ends. */
static void vulkan_buffer_release(VulkanBuffer* buffer) {
  EpDriverDevice* device = buffer->device;
  ep_mutex_lock(&device->mutex);
  ep_range_remove(&device->buffers, &buffer->range);
  ep_mutex_unlock(&device->mutex);
  ep_queues_retire(&device->streams, &buffer->retirement, vulkan_buffer_retired);
}

void* ep_driver_alloc(EpDriverDevice* device, size_t bytes) {
  EpError ignored;
  const VulkanBuffer* buffer = vulkan_buffer_add(device, bytes, NULL, &ignored);
  return buffer == NULL ? NULL : buffer->range.address;
}

void ep_driver_free(EpDriverDevice* device, void* memory) {
  ep_mutex_lock(&device->mutex);
  EpRange* range = device->buffers;
  while (range != NULL && (range->address != memory || VULKAN_BUFFER_OF(range)->external)) {
    range = range->next;
  }
  ep_mutex_unlock(&device->mutex);
  if (range != NULL) {
    vulkan_buffer_release(VULKAN_BUFFER_OF(range));
  }
}

struct EpDriverMemory {
  VulkanBuffer* buffer;
  size_t offset;
};

bool ep_driver_import_memory(EpDriverDevice* device, const EpMemoryRequest* request,
                             EpDriverMemory** out, EpError* error) {
  *out = NULL;
  EpDriverMemory* memory = malloc(sizeof *memory);
  if (memory == NULL) {
    return ep_out_of_memory(error);
  }
  memory->buffer = vulkan_buffer_add(device, request->size_bytes, request, error);
  memory->offset = request->offset_bytes;
  if (memory->buffer == NULL) {
    free(memory);
    return false;
  }
  *out = memory;
  return true;
}

void* ep_driver_memory_address(const EpDriverMemory* memory) {
  return memory->buffer->range.address + memory->offset;
}

void ep_driver_memory_release(EpDriverMemory* memory) {
  vulkan_buffer_release(memory->buffer);
  free(memory);
}

VulkanBuffer* vulkan_staging_get(EpDriverDevice* device, size_t bytes, EpError* error) {
  for (EpRange* idle = device->staging; idle != NULL; idle = idle->next) {
    if (idle->bytes >= bytes && idle->bytes / 4 <= bytes) {
      ep_range_remove(&device->staging, idle);
      --device->staging_count;
      return VULKAN_BUFFER_OF(idle);
    }
  }
  return vulkan_buffer_create(
      device, bytes, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
      NULL, error);
}

void vulkan_staging_put(VulkanBuffer* staging) {
  if (staging != NULL && staging->device->staging_count == VULKAN_MAX_STAGING) {
    vulkan_buffer_destroy(staging);
  } else if (staging != NULL) {
    ep_range_add(&staging->device->staging, &staging->range);
    ++staging->device->staging_count;
  }
}

void vulkan_staging_clear(EpDriverDevice* device) {
  while (device->staging != NULL) {
    VulkanBuffer* staging = VULKAN_BUFFER_OF(device->staging);
    device->staging = staging->range.next;
    vulkan_buffer_destroy(staging);
  }
  device->staging_count = 0;
}
