/*
 * What bench/gpu's application asks of Vulkan and the mock does not do, because no EP asks for it:
 * exports, fills, waits with a limit, several command buffers and regions at once. Linked into the
 * mock with --wrap of the functions below.
 */
#include <stdlib.h>

#include "mock.h"
#include "sim_vulkan.h"

#ifndef _GNU_SOURCE
int dup(int fd);
#endif

#define EXPORT_MEMORY_ALLOCATE_INFO ((VkStructureType)1000072002)
#define EXPORT_SEMAPHORE_CREATE_INFO ((VkStructureType)1000077000)
#define MAX_EXPORTS 16

/* The structs that an exporter fills begin alike: with what is exported. */
typedef struct GetFdInfo {
  VkStructureType sType;
  const void* pNext;
  void* object;
  uint32_t handleType;
} GetFdInfo;

static struct {
  void* object;
  intptr_t exported;
} exports[MAX_EXPORTS];

static void keep_export(void* object, intptr_t exported) {
  size_t i = 0;
  while (i < MAX_EXPORTS && exports[i].object != NULL) {
    ++i;
  }
  if (i == MAX_EXPORTS) {
    abort();
  }
  exports[i].object = object;
  exports[i].exported = exported;
}

static void end_export(const void* object) {
  for (size_t i = 0; i < MAX_EXPORTS; ++i) {
    if (object != NULL && exports[i].object == object) {
      mock_close(exports[i].exported);
      exports[i].object = NULL;
    }
  }
}

static VkResult get_fd(VkDevice device, const GetFdInfo* info, int* fd) {
  (void)device;
  for (size_t i = 0; i < MAX_EXPORTS; ++i) {
    if (exports[i].object == info->object) {
      *fd = dup((int)exports[i].exported);
      return VK_SUCCESS;
    }
  }
  return VK_ERROR_UNKNOWN;
}

VkResult __real_sim_vkAllocateMemory(VkDevice, const VkMemoryAllocateInfo*,
                                     const VkAllocationCallbacks*, VkDeviceMemory*);
VkResult __wrap_sim_vkAllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info,
                                     const VkAllocationCallbacks* allocator, VkDeviceMemory* out) {
  if (sim_chained(info->pNext, EXPORT_MEMORY_ALLOCATE_INFO) == NULL) {
    return __real_sim_vkAllocateMemory(device, info, allocator, out);
  }
  intptr_t exported = mock_export_memory((size_t)info->allocationSize);
  VkImportMemoryFdInfoKHR import = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                                    .fd = dup((int)exported)};
  VkMemoryAllocateInfo own = *info;
  own.pNext = &import;
  VkResult result = __real_sim_vkAllocateMemory(device, &own, allocator, out);
  keep_export(*out, exported);
  return result;
}

void __real_sim_vkFreeMemory(VkDevice, VkDeviceMemory, const VkAllocationCallbacks*);
void __wrap_sim_vkFreeMemory(VkDevice device, VkDeviceMemory memory,
                             const VkAllocationCallbacks* allocator) {
  end_export(memory);
  __real_sim_vkFreeMemory(device, memory, allocator);
}

VkResult sim_vkImportSemaphoreFdKHR(VkDevice device, const VkImportSemaphoreFdInfoKHR* info);
VkResult __real_sim_vkCreateSemaphore(VkDevice, const VkSemaphoreCreateInfo*,
                                      const VkAllocationCallbacks*, VkSemaphore*);
VkResult __wrap_sim_vkCreateSemaphore(VkDevice device, const VkSemaphoreCreateInfo* info,
                                      const VkAllocationCallbacks* allocator, VkSemaphore* out) {
  VkResult result = __real_sim_vkCreateSemaphore(device, info, allocator, out);
  if (result == VK_SUCCESS && sim_chained(info->pNext, EXPORT_SEMAPHORE_CREATE_INFO) != NULL) {
    intptr_t exported = mock_export_semaphore();
    VkImportSemaphoreFdInfoKHR import = {.semaphore = *out, .fd = dup((int)exported)};
    result = sim_vkImportSemaphoreFdKHR(device, &import);
    keep_export(*out, exported);
  }
  return result;
}

void __real_sim_vkDestroySemaphore(VkDevice, VkSemaphore, const VkAllocationCallbacks*);
void __wrap_sim_vkDestroySemaphore(VkDevice device, VkSemaphore semaphore,
                                   const VkAllocationCallbacks* allocator) {
  end_export(semaphore);
  __real_sim_vkDestroySemaphore(device, semaphore, allocator);
}

void __real_sim_vkGetPhysicalDeviceExternalSemaphoreProperties(
    VkPhysicalDevice, const VkPhysicalDeviceExternalSemaphoreInfo*, VkExternalSemaphoreProperties*);
void __wrap_sim_vkGetPhysicalDeviceExternalSemaphoreProperties(
    VkPhysicalDevice device, const VkPhysicalDeviceExternalSemaphoreInfo* info,
    VkExternalSemaphoreProperties* properties) {
  __real_sim_vkGetPhysicalDeviceExternalSemaphoreProperties(device, info, properties);
  properties->externalSemaphoreFeatures |= 1; /* Exportable. */
}

VkResult __real_sim_vkWaitSemaphores(VkDevice, const VkSemaphoreWaitInfo*, uint64_t);
VkResult __wrap_sim_vkWaitSemaphores(VkDevice device, const VkSemaphoreWaitInfo* info,
                                     uint64_t timeout) {
  if (timeout == UINT64_MAX) {
    return __real_sim_vkWaitSemaphores(device, info, timeout);
  }
  const SimSemaphore* semaphore = (const SimSemaphore*)info->pSemaphores[0];
  for (uint64_t slept = 0; slept < timeout; slept += 100000) {
    if (atomic_load(semaphore->value) >= info->pValues[0]) {
      return VK_SUCCESS;
    }
    sim_nap();
  }
  return (VkResult)2; /* VK_TIMEOUT */
}

VkResult __real_sim_vkAllocateCommandBuffers(VkDevice, const VkCommandBufferAllocateInfo*,
                                             VkCommandBuffer*);
VkResult __wrap_sim_vkAllocateCommandBuffers(VkDevice device,
                                             const VkCommandBufferAllocateInfo* info,
                                             VkCommandBuffer* buffers) {
  VkResult result = VK_SUCCESS;
  for (uint32_t i = 0; result == VK_SUCCESS && i < info->commandBufferCount; ++i) {
    result = __real_sim_vkAllocateCommandBuffers(device, info, &buffers[i]);
  }
  return result;
}

void __real_sim_vkCmdCopyBuffer(VkCommandBuffer, VkBuffer, VkBuffer, uint32_t, const VkBufferCopy*);
void __wrap_sim_vkCmdCopyBuffer(VkCommandBuffer commands, VkBuffer source, VkBuffer destination,
                                uint32_t count, const VkBufferCopy* ranges) {
  for (uint32_t i = 0; i < count; ++i) {
    __real_sim_vkCmdCopyBuffer(commands, source, destination, 1, &ranges[i]);
  }
}

/* A fill is a copy from memory that is full of the word; it stays for as long as the process. */
MOCK_EXPORT void vkCmdFillBuffer(VkCommandBuffer commands, VkBuffer buffer, VkDeviceSize offset,
                                 VkDeviceSize size, uint32_t word) {
  SimMemory* memory = calloc(1, sizeof *memory);
  SimBuffer* source = calloc(1, sizeof *source);
  uint32_t* words = malloc((size_t)size);
  if (memory == NULL || source == NULL || words == NULL) {
    abort();
  }
  for (size_t i = 0; i < size / sizeof word; ++i) {
    words[i] = word;
  }
  *memory = (SimMemory){.bytes = (size_t)size, .data = (char*)words};
  source->bytes = (size_t)size;
  source->memory = memory;
  const VkBufferCopy range = {.dstOffset = offset, .size = size};
  __real_sim_vkCmdCopyBuffer(commands, (VkBuffer)source, buffer, 1, &range);
}

VkResult sim_vkQueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* submits,
                           VkFence fence);
MOCK_EXPORT VkResult vkQueueWaitIdle(VkQueue queue) {
  const uint64_t one = 1;
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo create = {.pNext = &type};
  VkSemaphore done = NULL;
  VkResult result = __real_sim_vkCreateSemaphore(NULL, &create, NULL, &done);
  const VkTimelineSemaphoreSubmitInfo values = {
      .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
      .signalSemaphoreValueCount = 1,
      .pSignalSemaphoreValues = &one};
  const VkSubmitInfo submit = {
      .pNext = &values, .signalSemaphoreCount = 1, .pSignalSemaphores = &done};
  result = result == VK_SUCCESS ? sim_vkQueueSubmit(queue, 1, &submit, NULL) : result;
  const VkSemaphoreWaitInfo wait = {.semaphoreCount = 1, .pSemaphores = &done, .pValues = &one};
  result = result == VK_SUCCESS ? __real_sim_vkWaitSemaphores(NULL, &wait, UINT64_MAX) : result;
  __real_sim_vkDestroySemaphore(NULL, done, NULL);
  return result;
}

/* The application calls it when its own queue, which is the first, is the only one in use. */
MOCK_EXPORT VkResult vkDeviceWaitIdle(VkDevice device) {
  VkQueue queue = NULL;
  sim_vkGetDeviceQueue(device, 0, 0, &queue);
  return vkQueueWaitIdle(queue);
}

PFN_vkVoidFunction __real_sim_vkGetDeviceProcAddr(VkDevice, const char*);
PFN_vkVoidFunction __wrap_sim_vkGetDeviceProcAddr(VkDevice device, const char* name) {
  if (strcmp(name, "vkGetMemoryFdKHR") == 0 || strcmp(name, "vkGetSemaphoreFdKHR") == 0) {
    return (PFN_vkVoidFunction)get_fd;
  }
  if (strcmp(name, "vkWaitSemaphores") == 0) { /* A device of Vulkan 1.2. */
    return (PFN_vkVoidFunction)__real_sim_vkWaitSemaphores;
  }
  return __real_sim_vkGetDeviceProcAddr(device, name);
}
