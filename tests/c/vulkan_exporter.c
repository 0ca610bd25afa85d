#include "vulkan_exporter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VK(call)                                                              \
  do {                                                                        \
    VkResult result_ = (call);                                                \
    if (result_ != VK_SUCCESS) {                                              \
      fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, result_); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static void exporter_open_device(Exporter* exporter) {
  VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = VK_API_VERSION_1_2};
  VkInstanceCreateInfo instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                   .pApplicationInfo = &application};
  VK(vkCreateInstance(&instance, NULL, &exporter->instance));
  uint32_t count = 1;
  VkResult found = vkEnumeratePhysicalDevices(exporter->instance, &count, &exporter->physical);
  if (count == 0 || (found != VK_SUCCESS && found != VK_INCOMPLETE)) {
    fprintf(stderr, "no Vulkan device\n");
    exit(1);
  }
  const float priority = 1.0f;
  const char* const extensions[] = {"VK_KHR_external_memory_fd"};
  VkPhysicalDeviceVulkan12Features features = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
      .timelineSemaphore = VK_TRUE,
      .bufferDeviceAddress = VK_TRUE};
  VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                   .queueCount = 1,
                                   .pQueuePriorities = &priority};
  VkDeviceCreateInfo device = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &features,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = 1,
                               .ppEnabledExtensionNames = extensions};
  VK(vkCreateDevice(exporter->physical, &device, NULL, &exporter->device));
  vkGetDeviceQueue(exporter->device, 0, 0, &exporter->queue);
  VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  VK(vkCreateCommandPool(exporter->device, &pool, NULL, &exporter->pool));
}

static uint32_t exporter_memory_type(const Exporter* exporter, uint32_t allowed) {
  const VkMemoryPropertyFlags wanted =
      VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  VkPhysicalDeviceMemoryProperties properties;
  vkGetPhysicalDeviceMemoryProperties(exporter->physical, &properties);
  for (uint32_t i = 0; i < properties.memoryTypeCount; ++i) {
    if ((allowed >> i & 1) != 0 && (properties.memoryTypes[i].propertyFlags & wanted) == wanted) {
      return i;
    }
  }
  fprintf(stderr, "no memory that device and host both see\n");
  exit(1);
}

void exporter_open(Exporter* exporter, size_t bytes) {
  memset(exporter, 0, sizeof *exporter);
  exporter_open_device(exporter);
  if (bytes == 0) {
    return;
  }
  VkExternalMemoryBufferCreateInfo external = {
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
      .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  VkBufferCreateInfo buffer = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .pNext = &external,
      .size = bytes,
      .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
  VK(vkCreateBuffer(exporter->device, &buffer, NULL, &exporter->buffer));
  VkMemoryRequirements needed;
  vkGetBufferMemoryRequirements(exporter->device, exporter->buffer, &needed);
  VkExportMemoryAllocateInfo exported = {
      .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
      .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  VkMemoryAllocateInfo allocate = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
      .pNext = &exported,
      .allocationSize = needed.size,
      .memoryTypeIndex = exporter_memory_type(exporter, needed.memoryTypeBits)};
  VK(vkAllocateMemory(exporter->device, &allocate, NULL, &exporter->memory));
  VK(vkBindBufferMemory(exporter->device, exporter->buffer, exporter->memory, 0));
  VK(vkMapMemory(exporter->device, exporter->memory, 0, VK_WHOLE_SIZE, 0, &exporter->mapped));
  exporter->size = needed.size;
}

int exporter_fd(const Exporter* exporter) {
  PFN_vkGetMemoryFdKHR get_fd =
      (PFN_vkGetMemoryFdKHR)vkGetDeviceProcAddr(exporter->device, "vkGetMemoryFdKHR");
  VkMemoryGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                               .memory = exporter->memory,
                               .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  int fd = -1;
  VK(get_fd(exporter->device, &info, &fd));
  return fd;
}

void exporter_fill(const Exporter* exporter, size_t offset, size_t bytes, uint32_t word) {
  VkCommandBufferAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                          .commandPool = exporter->pool,
                                          .commandBufferCount = 1};
  VkCommandBuffer commands;
  VK(vkAllocateCommandBuffers(exporter->device, &allocate, &commands));
  VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  VK(vkBeginCommandBuffer(commands, &begin));
  vkCmdFillBuffer(commands, exporter->buffer, offset, bytes, word);
  VK(vkEndCommandBuffer(commands));
  VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .commandBufferCount = 1,
                         .pCommandBuffers = &commands};
  VK(vkQueueSubmit(exporter->queue, 1, &submit, VK_NULL_HANDLE));
  VK(vkQueueWaitIdle(exporter->queue));
  vkFreeCommandBuffers(exporter->device, exporter->pool, 1, &commands);
}

void exporter_close(Exporter* exporter) {
  vkDestroyBuffer(exporter->device, exporter->buffer, NULL);
  vkFreeMemory(exporter->device, exporter->memory, NULL);
  vkDestroyCommandPool(exporter->device, exporter->pool, NULL);
  vkDestroyDevice(exporter->device, NULL);
  vkDestroyInstance(exporter->instance, NULL);
}
