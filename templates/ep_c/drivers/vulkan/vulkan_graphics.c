/*
 * Graphics interop: the EP on the application's own VkDevice.
 */
#include "vulkan_graphics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vulkan_device.h"

#if ORT_API_VERSION >= 25

enum {
  VULKAN_GIVEN_LOADER,
  VULKAN_GIVEN_INSTANCE,
  VULKAN_GIVEN_PHYSICAL_DEVICE,
  VULKAN_GIVEN_DEVICE,
  VULKAN_GIVEN_QUEUE_FAMILY,
  VULKAN_GIVEN_QUEUE,
  VULKAN_GIVEN_ADDRESS,
  VULKAN_GIVEN_COUNT,
};

static const char* const vulkan_options[VULKAN_GIVEN_COUNT] = {
    [VULKAN_GIVEN_LOADER] = VULKAN_OPTION_GET_INSTANCE_PROC_ADDR,
    [VULKAN_GIVEN_INSTANCE] = VULKAN_OPTION_INSTANCE,
    [VULKAN_GIVEN_PHYSICAL_DEVICE] = VULKAN_OPTION_PHYSICAL_DEVICE,
    [VULKAN_GIVEN_DEVICE] = VULKAN_OPTION_DEVICE,
    [VULKAN_GIVEN_QUEUE_FAMILY] = VULKAN_OPTION_QUEUE_FAMILY_INDEX,
    [VULKAN_GIVEN_QUEUE] = VULKAN_OPTION_QUEUE_INDEX,
    [VULKAN_GIVEN_ADDRESS] = VULKAN_OPTION_BUFFER_DEVICE_ADDRESS,
};

static bool vulkan_parse(const char* key, const char* text, uint64_t most, uint64_t* value,
                         EpError* error) {
  char* end = NULL;
  errno = 0;
  *value = strtoull(text, &end, 0);
  return (errno == 0 && end != text && *end == '\0' && text[0] != '-' && *value <= most) ||
         ep_fail_argument(error, "additional_options: %s is '%s', not a number up to %" PRIu64, key,
                          text, most);
}

/* All options, or none: then `*given` is false. */
static bool vulkan_read_options(const OrtApi* api, const OrtKeyValuePairs* options,
                                uint64_t values[VULKAN_GIVEN_COUNT], bool* given, EpError* error) {
  size_t present = 0;
  const char* absent = NULL;
  for (size_t i = 0; i < VULKAN_GIVEN_COUNT; ++i) {
    const char* text = options == NULL ? NULL : api->GetKeyValue(options, vulkan_options[i]);
    uint64_t most = i == VULKAN_GIVEN_ADDRESS        ? 1
                    : i >= VULKAN_GIVEN_QUEUE_FAMILY ? UINT32_MAX
                                                     : UINTPTR_MAX;
    if (text == NULL) {
      absent = vulkan_options[i];
    } else if (vulkan_parse(vulkan_options[i], text, most, &values[i], error)) {
      ++present;
    } else {
      return false;
    }
    if (text != NULL && i <= VULKAN_GIVEN_DEVICE && values[i] == 0) {
      return ep_fail_argument(error, "additional_options: %s is null", vulkan_options[i]);
    }
  }
  *given = present > 0;
  return present == 0 || absent == NULL ||
         ep_fail_argument(error,
                          "additional_options: %s is missing; a device is lent with all of "
                          "the %d options, or none",
                          absent, VULKAN_GIVEN_COUNT);
}

static void vulkan_print_uuid(const uint8_t uuid[16], char text[33]) {
  for (size_t i = 0; i < 16; ++i) {
    (void)snprintf(text + 2 * i, 3, "%02x", (unsigned)uuid[i]);
  }
}

static bool vulkan_check_identity(const EpDriverDevice* device, const DriverApi* vk,
                                  VkPhysicalDevice physical, EpError* error) {
  VkPhysicalDeviceIDProperties id = {DRIVER_INIT(VkPhysicalDeviceIDProperties)};
  VkPhysicalDeviceProperties2 properties = {DRIVER_INIT(VkPhysicalDeviceProperties2), .pNext = &id};
  vk->vkGetPhysicalDeviceProperties2(physical, &properties);
  if (memcmp(id.deviceUUID, device->info.uuid, sizeof id.deviceUUID) == 0) {
    return true;
  }
  char theirs[33];
  char ours[33];
  vulkan_print_uuid(id.deviceUUID, theirs);
  vulkan_print_uuid(device->info.uuid, ours);
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

static bool vulkan_borrow(EpDriverDevice* device, const uint64_t values[VULKAN_GIVEN_COUNT],
                          EpError* error) {
  VkInstance instance = (VkInstance)(uintptr_t)values[VULKAN_GIVEN_INSTANCE];
  uintptr_t loader = (uintptr_t)values[VULKAN_GIVEN_LOADER];
  DriverApi vk = device->vk;
  memcpy(&vk.vkGetInstanceProcAddr, &loader, sizeof vk.vkGetInstanceProcAddr);
  for (const DriverSymbol* symbol = driver_symbols; symbol->name != NULL; ++symbol) {
    PFN_vkVoidFunction call = vk.vkGetInstanceProcAddr(instance, symbol->name);
    if (call != NULL) {
      memcpy((char*)&vk + symbol->slot, &call, sizeof call);
    }
  }
  VkPhysicalDevice physical = (VkPhysicalDevice)(uintptr_t)values[VULKAN_GIVEN_PHYSICAL_DEVICE];
  if (!vulkan_check_identity(device, &vk, physical, error)) {
    return false;
  }
  VulkanLoan loan = {.vk = vk,
                     .physical = physical,
                     .device = (VkDevice)(uintptr_t)values[VULKAN_GIVEN_DEVICE],
                     .queue_family = (uint32_t)values[VULKAN_GIVEN_QUEUE_FAMILY],
                     .queue = (uint32_t)values[VULKAN_GIVEN_QUEUE],
                     .has_address = values[VULKAN_GIVEN_ADDRESS] != 0};
  return vulkan_device_lend(device, &loan, error);
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
  uint64_t values[VULKAN_GIVEN_COUNT] = {0};
  bool given = false;
  if (!vulkan_read_options(api, config->additional_options, values, &given, error)) {
    return false;
  }
  vulkan_lock_at_rest(device);
  bool good =
      vulkan_check_unused(device, error) && (!given || vulkan_borrow(device, values, error));
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
