#include "vulkan_app.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The vulkan EP's declarations, which are checked against the vendor's header. */
#include "driver_api.h"

/* What only an exporter needs. */
#define EXPORT_MEMORY_ALLOCATE_INFO ((VkStructureType)1000072002)
#define MEMORY_GET_FD_INFO_KHR ((VkStructureType)1000074002)
#define EXPORT_SEMAPHORE_CREATE_INFO ((VkStructureType)1000077000)
#define SEMAPHORE_GET_FD_INFO_KHR ((VkStructureType)1000079001)
#define EXTERNAL_SEMAPHORE_EXPORTABLE 1u
#define QUEUE_FAMILY_EXTERNAL (~1u)

typedef struct ExportInfo {
  VkStructureType sType;
  const void* pNext;
  uint32_t handleTypes;
} ExportInfo;

typedef struct GetMemoryFdInfo {
  VkStructureType sType;
  const void* pNext;
  VkDeviceMemory memory;
  uint32_t handleType;
} GetMemoryFdInfo;

typedef struct GetSemaphoreFdInfo {
  VkStructureType sType;
  const void* pNext;
  VkSemaphore semaphore;
  uint32_t handleType;
} GetSemaphoreFdInfo;

typedef struct Buffer {
  VkBuffer buffer;
  VkDeviceMemory memory;
  size_t size;
} Buffer;

struct VulkanApp {
  DriverApi vk;
  VkResult (*device_wait_idle)(VkDevice);
  VkResult (*queue_wait_idle)(VkQueue);
  VkResult (*get_memory_fd)(VkDevice, const GetMemoryFdInfo*, int*);
  VkResult (*get_semaphore_fd)(VkDevice, const GetSemaphoreFdInfo*, int*);
  void (*fill)(VkCommandBuffer, VkBuffer, VkDeviceSize, VkDeviceSize, uint32_t);
  VkInstance instance;
  VkPhysicalDevice physical;
  char name[256];
  char uuid[33];
  uint32_t family;
  uint32_t queue_count;
  bool has_address;
  bool exports_semaphores;
  VkDevice device;
  VkQueue queue;
  VkCommandPool pool;
  Buffer shared;
  Buffer readback;
  uint32_t* seen; /* Two words for each frame. */
  VkSemaphore semaphore;
  size_t half;
  uint32_t frames;
  VkCommandBuffer* produce;
  VkCommandBuffer* consume;
};

static void check(VkResult result, const char* call) {
  if (result != VK_SUCCESS) {
    fprintf(stderr, "vulkan: %s failed with %d\n", call, (int)result);
    exit(1);
  }
}

#define VK(call) check((call), #call)

static void find(const void* function, void* slot, const char* name) {
  if (function == NULL) {
    fprintf(stderr, "vulkan: %s is missing\n", name);
    exit(1);
  }
  memcpy(slot, &function, sizeof function);
}

static void load(VulkanApp* app) {
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "vulkan: %s\n", dlerror());
    exit(1);
  }
#define FROM_LIBRARY(slot, name) find(dlsym(library, name), &app->vk.slot, name)
  FROM_LIBRARY(vkGetInstanceProcAddr, "vkGetInstanceProcAddr");
  FROM_LIBRARY(vkCreateInstance, "vkCreateInstance");
  FROM_LIBRARY(vkDestroyInstance, "vkDestroyInstance");
  FROM_LIBRARY(vkEnumeratePhysicalDevices, "vkEnumeratePhysicalDevices");
  FROM_LIBRARY(vkGetPhysicalDeviceProperties2, "vkGetPhysicalDeviceProperties2");
  FROM_LIBRARY(vkGetPhysicalDeviceFeatures2, "vkGetPhysicalDeviceFeatures2");
  FROM_LIBRARY(vkGetPhysicalDeviceExternalSemaphoreProperties,
               "vkGetPhysicalDeviceExternalSemaphoreProperties");
  FROM_LIBRARY(vkGetPhysicalDeviceMemoryProperties, "vkGetPhysicalDeviceMemoryProperties");
  FROM_LIBRARY(vkGetPhysicalDeviceQueueFamilyProperties,
               "vkGetPhysicalDeviceQueueFamilyProperties");
  FROM_LIBRARY(vkCreateDevice, "vkCreateDevice");
  FROM_LIBRARY(vkDestroyDevice, "vkDestroyDevice");
  FROM_LIBRARY(vkGetDeviceProcAddr, "vkGetDeviceProcAddr");
  FROM_LIBRARY(vkGetDeviceQueue, "vkGetDeviceQueue");
  FROM_LIBRARY(vkQueueSubmit, "vkQueueSubmit");
  FROM_LIBRARY(vkAllocateMemory, "vkAllocateMemory");
  FROM_LIBRARY(vkFreeMemory, "vkFreeMemory");
  FROM_LIBRARY(vkMapMemory, "vkMapMemory");
  FROM_LIBRARY(vkCreateBuffer, "vkCreateBuffer");
  FROM_LIBRARY(vkDestroyBuffer, "vkDestroyBuffer");
  FROM_LIBRARY(vkGetBufferMemoryRequirements2, "vkGetBufferMemoryRequirements2");
  FROM_LIBRARY(vkBindBufferMemory, "vkBindBufferMemory");
  FROM_LIBRARY(vkCreateCommandPool, "vkCreateCommandPool");
  FROM_LIBRARY(vkDestroyCommandPool, "vkDestroyCommandPool");
  FROM_LIBRARY(vkAllocateCommandBuffers, "vkAllocateCommandBuffers");
  FROM_LIBRARY(vkBeginCommandBuffer, "vkBeginCommandBuffer");
  FROM_LIBRARY(vkEndCommandBuffer, "vkEndCommandBuffer");
  FROM_LIBRARY(vkCmdCopyBuffer, "vkCmdCopyBuffer");
  FROM_LIBRARY(vkCmdPipelineBarrier, "vkCmdPipelineBarrier");
  FROM_LIBRARY(vkCreateSemaphore, "vkCreateSemaphore");
  FROM_LIBRARY(vkDestroySemaphore, "vkDestroySemaphore");
  FROM_LIBRARY(vkWaitSemaphores, "vkWaitSemaphores");
  FROM_LIBRARY(vkSignalSemaphore, "vkSignalSemaphore");
  FROM_LIBRARY(vkGetSemaphoreCounterValue, "vkGetSemaphoreCounterValue");
#undef FROM_LIBRARY
  find(dlsym(library, "vkDeviceWaitIdle"), &app->device_wait_idle, "vkDeviceWaitIdle");
  find(dlsym(library, "vkQueueWaitIdle"), &app->queue_wait_idle, "vkQueueWaitIdle");
  find(dlsym(library, "vkCmdFillBuffer"), &app->fill, "vkCmdFillBuffer");
}

static void choose_device(VulkanApp* app, const char* uuid) {
  VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = VK_API_VERSION_1_2};
  VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                               .pApplicationInfo = &application};
  VK(app->vk.vkCreateInstance(&info, NULL, &app->instance));
  VkPhysicalDevice devices[16];
  uint32_t count = 16;
  VK(app->vk.vkEnumeratePhysicalDevices(app->instance, &count, devices));
  for (uint32_t i = 0; i < count; ++i) {
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
    app->vk.vkGetPhysicalDeviceProperties2(devices[i], &properties);
    for (size_t k = 0; k < 16; ++k) {
      (void)snprintf(app->uuid + 2 * k, 3, "%02x", id.deviceUUID[k]);
    }
    (void)snprintf(app->name, sizeof app->name, "%s", properties.properties.deviceName);
    printf("  Vulkan device %u: %s, UUID %s\n", i, app->name, app->uuid);
    if (uuid == NULL || strcmp(app->uuid, uuid) == 0) {
      app->physical = devices[i];
      return;
    }
  }
  fprintf(stderr, "vulkan: none of %u devices has the EP device's UUID %s\n", count, uuid);
  exit(1);
}

static void look_at_device(VulkanApp* app) {
  VkPhysicalDeviceBufferDeviceAddressFeatures address = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES};
  VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                        .pNext = &address};
  app->vk.vkGetPhysicalDeviceFeatures2(app->physical, &features);
  app->has_address = address.bufferDeviceAddress != 0;
  VkSemaphoreTypeCreateInfo timeline = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  VkPhysicalDeviceExternalSemaphoreInfo asked = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
      .pNext = &timeline,
      .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
  VkExternalSemaphoreProperties found = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES};
  app->vk.vkGetPhysicalDeviceExternalSemaphoreProperties(app->physical, &asked, &found);
  app->exports_semaphores = (found.externalSemaphoreFeatures & EXTERNAL_SEMAPHORE_EXPORTABLE) != 0;
}

static void open_device(VulkanApp* app) {
  VkQueueFamilyProperties families[16];
  uint32_t count = 16;
  app->vk.vkGetPhysicalDeviceQueueFamilyProperties(app->physical, &count, families);
  while (app->family < count && (families[app->family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
    ++app->family;
  }
  if (app->family == count) {
    fprintf(stderr, "vulkan: the device has no queue that computes\n");
    exit(1);
  }
  app->queue_count = families[app->family].queueCount > 1 ? 2 : 1;
  const float priorities[] = {1.0f, 1.0f};
  const char* const extensions[] = {"VK_KHR_external_memory_fd", "VK_KHR_external_semaphore_fd"};
  VkPhysicalDeviceBufferDeviceAddressFeatures address = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
      .bufferDeviceAddress = app->has_address};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
      .pNext = &address,
      .timelineSemaphore = 1};
  VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                   .queueFamilyIndex = app->family,
                                   .queueCount = app->queue_count,
                                   .pQueuePriorities = priorities};
  VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                             .pNext = &timeline,
                             .queueCreateInfoCount = 1,
                             .pQueueCreateInfos = &queue,
                             .enabledExtensionCount = app->exports_semaphores ? 2 : 1,
                             .ppEnabledExtensionNames = extensions};
  VK(app->vk.vkCreateDevice(app->physical, &info, NULL, &app->device));
  app->vk.vkGetDeviceQueue(app->device, app->family, 0, &app->queue);
  PFN_vkVoidFunction found = app->vk.vkGetDeviceProcAddr(app->device, "vkGetMemoryFdKHR");
  memcpy(&app->get_memory_fd, &found, sizeof found);
  found = app->vk.vkGetDeviceProcAddr(app->device, "vkGetSemaphoreFdKHR");
  memcpy(&app->get_semaphore_fd, &found, sizeof found);
  if (app->get_memory_fd == NULL || (app->exports_semaphores && app->get_semaphore_fd == NULL)) {
    fprintf(stderr, "vulkan: the device exports no descriptors\n");
    exit(1);
  }
}

static uint32_t memory_type(const VulkanApp* app, uint32_t allowed, uint32_t wanted) {
  VkPhysicalDeviceMemoryProperties properties;
  app->vk.vkGetPhysicalDeviceMemoryProperties(app->physical, &properties);
  for (uint32_t i = 0; i < properties.memoryTypeCount; ++i) {
    if ((allowed >> i & 1) != 0 && (properties.memoryTypes[i].propertyFlags & wanted) == wanted) {
      return i;
    }
  }
  fprintf(stderr, "vulkan: no memory of properties %u\n", wanted);
  exit(1);
}

static Buffer make_buffer(const VulkanApp* app, size_t bytes, uint32_t properties, bool exported) {
  Buffer made = {0};
  VkExternalMemoryBufferCreateInfo external = {
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
      .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  VkBufferCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .pNext = exported ? &external : NULL,
      .size = bytes,
      .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
  VK(app->vk.vkCreateBuffer(app->device, &info, NULL, &made.buffer));
  VkBufferMemoryRequirementsInfo2 asked = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = made.buffer};
  VkMemoryRequirements2 needed = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
  app->vk.vkGetBufferMemoryRequirements2(app->device, &asked, &needed);
  ExportInfo export = {.sType = EXPORT_MEMORY_ALLOCATE_INFO,
                       .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  VkMemoryAllocateInfo allocate = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
      .pNext = exported ? &export : NULL,
      .allocationSize = needed.memoryRequirements.size,
      .memoryTypeIndex = memory_type(app, needed.memoryRequirements.memoryTypeBits, properties)};
  VK(app->vk.vkAllocateMemory(app->device, &allocate, NULL, &made.memory));
  VK(app->vk.vkBindBufferMemory(app->device, made.buffer, made.memory, 0));
  made.size = (size_t)allocate.allocationSize;
  return made;
}

static void make_semaphore(VulkanApp* app) {
  ExportInfo export = {.sType = EXPORT_SEMAPHORE_CREATE_INFO,
                       .handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
  VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                    .pNext = app->exports_semaphores ? &export : NULL,
                                    .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  VK(app->vk.vkCreateSemaphore(app->device, &info, NULL, &app->semaphore));
}

/* Hands the buffer to the other API, or takes it back. */
static void transfer(const VulkanApp* app, VkCommandBuffer commands, bool back) {
  VkBufferMemoryBarrier barrier = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
      .srcAccessMask = back ? 0 : VK_ACCESS_TRANSFER_WRITE_BIT,
      .dstAccessMask = back ? VK_ACCESS_TRANSFER_READ_BIT : 0,
      .srcQueueFamilyIndex = back ? QUEUE_FAMILY_EXTERNAL : app->family,
      .dstQueueFamilyIndex = back ? app->family : QUEUE_FAMILY_EXTERNAL,
      .buffer = app->shared.buffer,
      .offset = back ? app->half : 0,
      .size = app->half};
  app->vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                               VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 1, &barrier, 0, NULL);
}

static void record_frame(VulkanApp* app, uint32_t frame) {
  VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  VkCommandBuffer commands = app->produce[frame];
  VK(app->vk.vkBeginCommandBuffer(commands, &begin));
  app->fill(commands, app->shared.buffer, 0, app->half, frame + 1);
  transfer(app, commands, false);
  VK(app->vk.vkEndCommandBuffer(commands));
  const VkDeviceSize slot = (VkDeviceSize)frame * 8;
  const VkBufferCopy ends[] = {{app->half, slot, 4}, {2 * app->half - 4, slot + 4, 4}};
  commands = app->consume[frame];
  VK(app->vk.vkBeginCommandBuffer(commands, &begin));
  transfer(app, commands, true);
  app->vk.vkCmdCopyBuffer(commands, app->shared.buffer, app->readback.buffer, 2, ends);
  VK(app->vk.vkEndCommandBuffer(commands));
}

static void record(VulkanApp* app) {
  VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                  .queueFamilyIndex = app->family};
  VK(app->vk.vkCreateCommandPool(app->device, &pool, NULL, &app->pool));
  VkCommandBufferAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                          .commandPool = app->pool,
                                          .commandBufferCount = app->frames};
  VK(app->vk.vkAllocateCommandBuffers(app->device, &allocate, app->produce));
  VK(app->vk.vkAllocateCommandBuffers(app->device, &allocate, app->consume));
  for (uint32_t i = 0; i < app->frames; ++i) {
    record_frame(app, i);
  }
}

VulkanApp* vulkan_open(const char* uuid, size_t half, uint32_t frames) {
  VulkanApp* app = calloc(1, sizeof *app);
  if (app == NULL) {
    exit(1);
  }
  app->half = half;
  app->frames = frames;
  app->produce = calloc(frames, sizeof *app->produce);
  app->consume = calloc(frames, sizeof *app->consume);
  load(app);
  choose_device(app, uuid);
  look_at_device(app);
  open_device(app);
  app->shared = make_buffer(app, 2 * half, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, true);
  app->readback = make_buffer(
      app, (size_t)frames * 8,
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, false);
  void* seen = NULL;
  VK(app->vk.vkMapMemory(app->device, app->readback.memory, 0, app->readback.size, 0, &seen));
  app->seen = seen;
  memset(app->seen, 0, (size_t)frames * 8);
  make_semaphore(app);
  record(app);
  return app;
}

void vulkan_close(VulkanApp* app) {
  VK(app->device_wait_idle(app->device));
  app->vk.vkDestroyCommandPool(app->device, app->pool, NULL);
  app->vk.vkDestroySemaphore(app->device, app->semaphore, NULL);
  const Buffer buffers[] = {app->shared, app->readback};
  for (size_t i = 0; i < 2; ++i) {
    app->vk.vkDestroyBuffer(app->device, buffers[i].buffer, NULL);
    app->vk.vkFreeMemory(app->device, buffers[i].memory, NULL);
  }
  app->vk.vkDestroyDevice(app->device, NULL);
  app->vk.vkDestroyInstance(app->instance, NULL);
  free(app->produce);
  free(app->consume);
  free(app);
}

const char* vulkan_name(const VulkanApp* app) {
  return app->name;
}

const char* vulkan_uuid(const VulkanApp* app) {
  return app->uuid;
}

VulkanHandles vulkan_handles(const VulkanApp* app) {
  VulkanHandles handles = {.instance = (uintptr_t)app->instance,
                           .physical = (uintptr_t)app->physical,
                           .device = (uintptr_t)app->device,
                           .family = app->family,
                           .queue = app->queue_count - 1,
                           .has_address = app->has_address};
  memcpy(&handles.get_instance_proc_addr, &app->vk.vkGetInstanceProcAddr,
         sizeof handles.get_instance_proc_addr);
  return handles;
}

bool vulkan_has_two_queues(const VulkanApp* app) {
  return app->queue_count > 1;
}

bool vulkan_exports_semaphores(const VulkanApp* app) {
  return app->exports_semaphores;
}

int vulkan_memory_fd(const VulkanApp* app, size_t* size) {
  const GetMemoryFdInfo info = {.sType = MEMORY_GET_FD_INFO_KHR,
                                .memory = app->shared.memory,
                                .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  int fd = -1;
  VK(app->get_memory_fd(app->device, &info, &fd));
  *size = app->shared.size;
  return fd;
}

int vulkan_semaphore_fd(const VulkanApp* app) {
  const GetSemaphoreFdInfo info = {.sType = SEMAPHORE_GET_FD_INFO_KHR,
                                   .semaphore = app->semaphore,
                                   .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
  int fd = -1;
  VK(app->get_semaphore_fd(app->device, &info, &fd));
  return fd;
}

static void submit(VulkanApp* app, VkCommandBuffer commands, const uint64_t* wait,
                   const uint64_t* signal) {
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkTimelineSemaphoreSubmitInfo values = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                          .waitSemaphoreValueCount = wait != NULL,
                                          .pWaitSemaphoreValues = wait,
                                          .signalSemaphoreValueCount = signal != NULL,
                                          .pSignalSemaphoreValues = signal};
  VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                       .pNext = &values,
                       .waitSemaphoreCount = wait != NULL,
                       .pWaitSemaphores = &app->semaphore,
                       .pWaitDstStageMask = &stage,
                       .commandBufferCount = 1,
                       .pCommandBuffers = &commands,
                       .signalSemaphoreCount = signal != NULL,
                       .pSignalSemaphores = &app->semaphore};
  VK(app->vk.vkQueueSubmit(app->queue, 1, &info, 0));
}

void vulkan_produce(VulkanApp* app, uint32_t frame, uint64_t wait, uint64_t signal) {
  submit(app, app->produce[frame], &wait, &signal);
}

void vulkan_consume(VulkanApp* app, uint32_t frame, uint64_t wait) {
  submit(app, app->consume[frame], &wait, NULL);
}

void vulkan_signal(const VulkanApp* app, uint64_t value) {
  const VkSemaphoreSignalInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                      .semaphore = app->semaphore,
                                      .value = value};
  VK(app->vk.vkSignalSemaphore(app->device, &info));
}

uint64_t vulkan_value(const VulkanApp* app) {
  uint64_t value = 0;
  VK(app->vk.vkGetSemaphoreCounterValue(app->device, app->semaphore, &value));
  return value;
}

bool vulkan_wait(const VulkanApp* app, uint64_t value, uint32_t milliseconds) {
  const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                    .semaphoreCount = 1,
                                    .pSemaphores = &app->semaphore,
                                    .pValues = &value};
  return app->vk.vkWaitSemaphores(app->device, &info, (uint64_t)milliseconds * 1000000) ==
         VK_SUCCESS;
}

void vulkan_rest(VulkanApp* app) {
  VK(app->queue_wait_idle(app->queue));
}

bool vulkan_saw(const VulkanApp* app, uint32_t frame) {
  return app->seen[2 * frame] == frame + 1 && app->seen[2 * frame + 1] == frame + 1;
}
