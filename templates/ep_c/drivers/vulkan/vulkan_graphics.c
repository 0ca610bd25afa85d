/*
 * Graphics interop: the EP on the application's own VkDevice.
 */
#include <string.h>

#include "ep_devices.h"
#include "ep_graphics.h"
#include "graphics_options.h"
#include "vulkan_device.h"

#if ORT_API_VERSION >= 25

/* All options, or none: then `*given` is false. */
static bool vulkan_read_options(const OrtApi* api, const OrtKeyValuePairs* pairs,
                                EpGraphicsOptions* options, bool* given, EpError* error) {
  size_t count = 0;
  const char* absent = NULL;
  if (!ep_options_read(ep_graphics_options, api, pairs, options, &count, &absent, error)) {
    return false;
  }
  *given = count > 0;
  return count == 0 || absent == NULL ||
         ep_fail_argument(error,
                          "additional_options: %s is missing; a device is lent with all of the "
                          "options, or none",
                          absent);
}

static bool vulkan_check_identity(const EpDriverDevice* device, const DriverApi* vk,
                                  VkPhysicalDevice physical, EpError* error) {
  VkPhysicalDeviceIDProperties id = {DRIVER_INIT(VkPhysicalDeviceIDProperties)};
  VkPhysicalDeviceProperties2 properties = {DRIVER_INIT(VkPhysicalDeviceProperties2), .pNext = &id};
  vk->vkGetPhysicalDeviceProperties2(physical, &properties);
  if (memcmp(id.deviceUUID, device->info.uuid, sizeof id.deviceUUID) == 0) {
    return true;
  }
  char theirs[EP_UUID_CAPACITY];
  char ours[EP_UUID_CAPACITY];
  ep_uuid_text(id.deviceUUID, theirs);
  ep_uuid_text(device->info.uuid, ours);
  return ep_fail_argument(error,
                          "additional_options: " VULKAN_OPTION_PHYSICAL_DEVICE
                          " is %s, "
                          "UUID %s, but the EP device is %s, UUID %s",
                          properties.properties.deviceName, theirs, device->name, ours);
}

/* The mutex, once the thread of the stream for copies has left what is to go. */
static void vulkan_lock_at_rest(EpDriverDevice* device) {
  ep_mutex_lock(&device->mutex);
  EpDriverStream* copies = device->copies;
  ep_mutex_unlock(&device->mutex);
  if (copies != NULL) {
    ep_queue_rest((EpQueue*)copies);
  }
  ep_mutex_lock(&device->mutex);
}

/* Called with the mutex held. */
static bool vulkan_check_unused(const EpDriverDevice* device, EpError* error) {
  bool streams = vulkan_has_streams(device);
  return (!streams && device->buffers == NULL && device->semaphores == 0) ||
         ep_fail(error, ORT_FAIL, EP_NAME ": %s still has %s; release them first", device->name,
                 streams                   ? "streams"
                 : device->buffers != NULL ? "memory"
                                           : "semaphores");
}

/* Called with the mutex held. */
static bool vulkan_borrow(EpDriverDevice* device, const EpGraphicsOptions* options,
                          EpError* error) {
  VkInstance instance = (VkInstance)options->instance;
  VulkanLoan loan = {.vk = device->vk,
                     .physical = (VkPhysicalDevice)options->physical_device,
                     .device = (VkDevice)options->device,
                     .queue_family = options->queue_family_index,
                     .queue = options->queue_index,
                     .has_address = options->buffer_device_address};
  DriverApi* vk = &loan.vk;
  memcpy(&vk->vkGetInstanceProcAddr, &options->get_instance_proc_addr,
         sizeof vk->vkGetInstanceProcAddr);
  for (const DriverSymbol* symbol = driver_symbols; symbol->name != NULL; ++symbol) {
    PFN_vkVoidFunction call = vk->vkGetInstanceProcAddr(instance, symbol->name);
    if (call != NULL) {
      memcpy((char*)vk + symbol->slot, &call, sizeof call);
    }
  }
  return vulkan_check_identity(device, vk, loan.physical, error) &&
         vulkan_device_lend(device, &loan, error);
}

bool ep_driver_graphics_init(EpDriverDevice* device, const OrtApi* api,
                             const OrtGraphicsInteropConfig* config, EpError* error) {
#ifdef _WIN32
  if (config->graphics_api == ORT_GRAPHICS_API_D3D12) {
    return true; /* Its handles are imported without any preparation. */
  }
#endif
  if (config->graphics_api != ORT_GRAPHICS_API_VULKAN) {
    return ep_fail(error, ORT_NOT_IMPLEMENTED,
                   "graphics_api is %d, which " EP_NAME " does not work beside",
                   (int)config->graphics_api);
  }
  EpGraphicsOptions options = {0};
  bool given = false;
  if (!vulkan_read_options(api, config->additional_options, &options, &given, error)) {
    return false;
  }
  vulkan_lock_at_rest(device);
  bool good =
      vulkan_check_unused(device, error) && (!given || vulkan_borrow(device, &options, error));
  ep_mutex_unlock(&device->mutex);
  return good;
}

bool ep_driver_graphics_deinit(EpDriverDevice* device, EpError* error) {
  vulkan_lock_at_rest(device);
  bool good = vulkan_check_unused(device, error);
  if (good) {
    vulkan_device_restore(device);
  }
  ep_mutex_unlock(&device->mutex);
  return good;
}
#endif
