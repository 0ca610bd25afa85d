/*
 * The Vulkan loader, instance, physical devices and their identities, probes and graphics interop.
 */
#include "vulkan_device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Extensions' calls are the device's own: null where it was made without the extension. */
static void vulkan_load_extensions(EpDriverDevice* device) {
  for (const DriverSymbol* symbol = driver_symbols; symbol->name != NULL; ++symbol) {
    if (symbol->optional) {
      PFN_vkVoidFunction call = device->vk.vkGetDeviceProcAddr(device->device, symbol->name);
      memcpy((char*)&device->vk + symbol->slot, &call, sizeof call);
    }
  }
}

/* False when this machine has no Vulkan, or one that is too old: no failure. */
static bool vulkan_open_instance(EpDriver* driver) {
  uint32_t version = 0;
  if (!driver_api_open(&driver->vk) ||
      driver->vk.vkEnumerateInstanceVersion(&version) != VK_SUCCESS ||
      version < VK_API_VERSION_1_2) {
    return false;
  }
  VkApplicationInfo application = {
      DRIVER_INIT(VkApplicationInfo),
      .pApplicationName = EP_NAME,
      .apiVersion = VK_API_VERSION_1_2,
  };
  VkInstanceCreateInfo create = {
      DRIVER_INIT(VkInstanceCreateInfo),
      .pApplicationInfo = &application,
  };
  if (driver->vk.vkCreateInstance(&create, NULL, &driver->instance) != VK_SUCCESS) {
    driver->instance = NULL;
    return false;
  }
  return true;
}

static bool vulkan_has_extension(const VkExtensionProperties* found, uint32_t count,
                                 const char* name) {
  for (uint32_t i = 0; i < count; ++i) {
    if (strcmp(found[i].extensionName, name) == 0) {
      return true;
    }
  }
  return false;
}

static bool vulkan_read_extensions(EpDriverDevice* device) {
  const DriverApi* vk = &device->vk;
  uint32_t count = 0;
  if (vk->vkEnumerateDeviceExtensionProperties(device->physical, NULL, &count, NULL) !=
      VK_SUCCESS) {
    return false;
  }
  VkExtensionProperties* found = calloc((size_t)count + 1, sizeof *found);
  bool good = found != NULL && vk->vkEnumerateDeviceExtensionProperties(
                                   device->physical, NULL, &count, found) == VK_SUCCESS;
  if (good) {
    for (size_t i = 0; i < DRIVER_EXTENSION_COUNT; ++i) {
      device->has[i] = vulkan_has_extension(found, count, driver_extensions[i].name);
    }
  }
  free(found);
  return good;
}

static void vulkan_read_properties(EpDriverDevice* device) {
  VkPhysicalDeviceIDProperties id = {DRIVER_INIT(VkPhysicalDeviceIDProperties)};
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {
      DRIVER_INIT(VkPhysicalDevicePCIBusInfoPropertiesEXT)};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
      DRIVER_INIT(VkPhysicalDeviceExternalMemoryHostPropertiesEXT)};
  if (device->has[DRIVER_PCI_BUS_INFO]) {
    id.pNext = &pci;
  }
  if (device->has[DRIVER_HOST_POINTER]) {
    host.pNext = id.pNext;
    id.pNext = &host;
  }
  VkPhysicalDeviceProperties2 properties = {DRIVER_INIT(VkPhysicalDeviceProperties2), .pNext = &id};
  device->vk.vkGetPhysicalDeviceProperties2(device->physical, &properties);
  const VkPhysicalDeviceProperties* found = &properties.properties;
  EpDeviceInfo* info = &device->info;
  (void)snprintf(device->name, sizeof device->name, "%s", found->deviceName);
  info->name = device->name;
  bool is_cpu = found->deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  info->hardware_type = is_cpu ? OrtHardwareDeviceType_CPU : OrtHardwareDeviceType_GPU;
  info->hardware_vendor_id = is_cpu ? 0 : found->vendorID;
  info->hardware_device_id = is_cpu ? 0 : found->deviceID;
  info->hardware_vendor = EP_VENDOR;
  info->has_uuid = true;
  memcpy(info->uuid, id.deviceUUID, sizeof info->uuid);
  info->has_luid = id.deviceLUIDValid != 0;
  memcpy(&info->luid, id.deviceLUID, sizeof info->luid);
  if (device->has[DRIVER_PCI_BUS_INFO]) {
    (void)snprintf(device->pci_bus_id, sizeof device->pci_bus_id,
                   "%04" PRIx32 ":%02" PRIx32 ":%02" PRIx32 ".%" PRIx32, pci.pciDomain, pci.pciBus,
                   pci.pciDevice, pci.pciFunction);
    info->pci_bus_id = device->pci_bus_id;
  }
  info->memory_device_type = EP_MEMORY_DEVICE_TYPE;
  device->host_pointer_alignment = (size_t)host.minImportedHostPointerAlignment;
}

/* The family with the most queues that compute; false if there is none. */
static bool vulkan_choose_queues(EpDriverDevice* device) {
  VkQueueFamilyProperties families[32];
  uint32_t count = 32;
  device->queue_count = 0;
  device->vk.vkGetPhysicalDeviceQueueFamilyProperties(device->physical, &count, families);
  for (uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0 &&
        families[i].queueCount > device->queue_count) {
      device->queue_family = i;
      device->queue_count = families[i].queueCount;
    }
  }
  if (device->queue_count > VULKAN_MAX_QUEUES) {
    device->queue_count = VULKAN_MAX_QUEUES;
  }
  return device->queue_count > 0;
}

static void vulkan_probe_memory(EpDriverDevice* device, const EpHandleType* type) {
  VkPhysicalDeviceExternalBufferInfo info = {DRIVER_INIT(VkPhysicalDeviceExternalBufferInfo),
                                             .usage = vulkan_buffer_usage(device),
                                             .handleType = type->driver_type};
  VkExternalBufferProperties found = {DRIVER_INIT(VkExternalBufferProperties)};
  device->vk.vkGetPhysicalDeviceExternalBufferProperties(device->physical, &info, &found);
  VkExternalMemoryFeatureFlags features = found.externalMemoryProperties.externalMemoryFeatures;
  if ((features & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) != 0) {
    device->memory_types |= type->driver_type;
  }
  if ((features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) != 0 || type->dedicated) {
    device->dedicated_types |= type->driver_type;
  }
}

/* Support for binary semaphores says nothing about timelines, so the question is about those. */
static void vulkan_probe_semaphore(EpDriverDevice* device, const EpHandleType* type) {
  VkSemaphoreTypeCreateInfo timeline = {DRIVER_INIT(VkSemaphoreTypeCreateInfo),
                                        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  VkPhysicalDeviceExternalSemaphoreInfo info = {DRIVER_INIT(VkPhysicalDeviceExternalSemaphoreInfo),
                                                .pNext = &timeline,
                                                .handleType = type->driver_type};
  VkExternalSemaphoreProperties found = {DRIVER_INIT(VkExternalSemaphoreProperties)};
  device->vk.vkGetPhysicalDeviceExternalSemaphoreProperties(device->physical, &info, &found);
  if ((found.externalSemaphoreFeatures & VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT) != 0) {
    device->semaphore_types |= type->driver_type;
  }
}

/* Asks once for every handle type: the answers do not change. */
static void vulkan_probe(EpDriverDevice* device) {
  device->memory_types = 0;
  device->dedicated_types = 0;
  device->semaphore_types = 0;
  for (const EpHandleType* type = ep_memory_types; type->name != NULL; ++type) {
    DriverExtension needed =
        type->kind == EP_NATIVE_POINTER ? DRIVER_HOST_POINTER : DRIVER_EXTERNAL_MEMORY;
    if (device->has[needed] && (type->platforms & EP_THIS_PLATFORM) != 0) {
      vulkan_probe_memory(device, type);
    }
  }
  for (const EpHandleType* type = ep_semaphore_types; type->name != NULL; ++type) {
    if (device->has[DRIVER_EXTERNAL_SEMAPHORE] && (type->platforms & EP_THIS_PLATFORM) != 0) {
      vulkan_probe_semaphore(device, type);
    }
  }
}

/* Describes `physical`; false when the EP cannot use it. */
static bool vulkan_describe(EpDriver* driver, VkPhysicalDevice physical, EpDriverDevice* device) {
  device->driver = driver;
  device->physical = physical;
  device->own_physical = physical;
  device->vk = driver->vk;
  VkPhysicalDeviceProperties2 properties = {DRIVER_INIT(VkPhysicalDeviceProperties2)};
  driver->vk.vkGetPhysicalDeviceProperties2(physical, &properties);
  if (properties.properties.apiVersion < VK_API_VERSION_1_2 || !vulkan_read_extensions(device) ||
      !vulkan_choose_queues(device)) {
    return false;
  }
  VkPhysicalDeviceBufferDeviceAddressFeatures address = {
      DRIVER_INIT(VkPhysicalDeviceBufferDeviceAddressFeatures)};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
      DRIVER_INIT(VkPhysicalDeviceTimelineSemaphoreFeatures), .pNext = &address};
  VkPhysicalDeviceFeatures2 features = {DRIVER_INIT(VkPhysicalDeviceFeatures2), .pNext = &timeline};
  driver->vk.vkGetPhysicalDeviceFeatures2(physical, &features);
  if (timeline.timelineSemaphore == 0) {
    return false;
  }
  device->has_address = address.bufferDeviceAddress != 0;
  device->info.host_access = !device->has_address;
  driver->vk.vkGetPhysicalDeviceMemoryProperties(physical, &device->memory);
  vulkan_read_properties(device);
  vulkan_probe(device);
  return true;
}

static bool vulkan_enumerate(EpDriver* driver, EpError* error) {
  uint32_t count = 0;
  if (driver->vk.vkEnumeratePhysicalDevices(driver->instance, &count, NULL) != VK_SUCCESS) {
    return true; /* A loader without any driver. */
  }
  VkPhysicalDevice* found = calloc((size_t)count + 1, sizeof *found);
  if (found == NULL) {
    return ep_out_of_memory(error);
  }
  VkResult result = driver->vk.vkEnumeratePhysicalDevices(driver->instance, &count, found);
  for (uint32_t i = 0; result == VK_SUCCESS && i < count; ++i) {
    EpDriverDevice* device = &driver->devices[driver->device_count];
    if (driver->device_count < VULKAN_MAX_DEVICES && vulkan_describe(driver, found[i], device)) {
      device->info.memory_device_id = (uint32_t)driver->device_count;
      ep_mutex_init(&device->mutex);
      ep_queues_init(&device->streams, &vulkan_streams, driver, &device->mutex);
      ++driver->device_count;
    }
  }
  free(found);
  return driver_check(result, DRIVER_NAME_vkEnumeratePhysicalDevices, error);
}

static void vulkan_device_end(EpDriverDevice* device) {
  if (device->device != NULL) {
    vulkan_copies_destroy(device);
    vulkan_staging_clear(device);
    if (!device->borrowed) {
      device->vk.vkDestroyDevice(device->device, NULL);
    }
    device->device = NULL;
  }
}

bool ep_driver_open(EpDriver** out, EpError* error) {
  EpDriver* driver = calloc(1, sizeof *driver);
  *out = driver;
  if (driver == NULL) {
    return ep_out_of_memory(error);
  }
  if (vulkan_open_instance(driver) && !vulkan_enumerate(driver, error)) {
    ep_driver_close(driver);
    *out = NULL;
  }
  return *out != NULL;
}

void ep_driver_close(EpDriver* driver) {
  for (size_t i = 0; i < driver->device_count; ++i) {
    vulkan_device_end(&driver->devices[i]);
    ep_mutex_destroy(&driver->devices[i].mutex);
  }
  if (driver->instance != NULL) {
    driver->vk.vkDestroyInstance(driver->instance, NULL);
  }
  free(driver);
}

size_t ep_driver_device_count(const EpDriver* driver) {
  return driver->device_count;
}

EpDriverDevice* ep_driver_device(EpDriver* driver, size_t index) {
  return &driver->devices[index];
}

const EpDeviceInfo* ep_driver_device_info(const EpDriverDevice* device) {
  return &device->info;
}

/* Loads the calls of `device->device` and takes its queues. */
static bool vulkan_device_adopt(EpDriverDevice* device, uint32_t first_queue, EpError* error) {
  vulkan_load_extensions(device);
  atomic_store(&device->lost, false);
  for (uint32_t i = 0; i < device->queue_count; ++i) {
    device->queues[i].streams = 0;
    device->queues[i].shared = i + 1 == device->queue_count;
    device->vk.vkGetDeviceQueue(device->device, device->queue_family, first_queue + i,
                                &device->queues[i].queue);
  }
  device->copies = vulkan_stream_new(device, error);
  return device->copies != NULL;
}

static bool vulkan_device_create(EpDriverDevice* device, EpError* error) {
  const char* extensions[DRIVER_EXTENSION_COUNT];
  uint32_t count = 0;
  for (size_t i = 0; i < DRIVER_EXTENSION_COUNT; ++i) {
    if (device->has[i] && driver_extensions[i].call != NULL) {
      extensions[count++] = driver_extensions[i].name;
    }
  }
  static const float priorities[VULKAN_MAX_QUEUES] = {1, 1, 1, 1, 1, 1, 1, 1};
  VkPhysicalDeviceBufferDeviceAddressFeatures address = {
      DRIVER_INIT(VkPhysicalDeviceBufferDeviceAddressFeatures),
      .bufferDeviceAddress = device->has_address};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
      DRIVER_INIT(VkPhysicalDeviceTimelineSemaphoreFeatures), .pNext = &address,
      .timelineSemaphore = 1};
  VkDeviceQueueCreateInfo queues = {
      DRIVER_INIT(VkDeviceQueueCreateInfo), .queueFamilyIndex = device->queue_family,
      .queueCount = device->queue_count, .pQueuePriorities = priorities};
  VkDeviceCreateInfo create = {DRIVER_INIT(VkDeviceCreateInfo), .pNext = &timeline};
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queues;
  create.enabledExtensionCount = count;
  create.ppEnabledExtensionNames = extensions;
  if (!DRIVER_TRY(&device->vk, error, vkCreateDevice, device->physical, &create, NULL,
                  &device->device)) {
    device->device = NULL;
    return false;
  }
  return true;
}

bool vulkan_device_ready(EpDriverDevice* device, EpError* error) {
  ep_mutex_lock(&device->mutex);
  bool good = device->device != NULL;
  if (!good && vulkan_device_create(device, error)) {
    good = vulkan_device_adopt(device, 0, error);
    if (!good) {
      vulkan_device_end(device);
    }
  }
  ep_mutex_unlock(&device->mutex);
  return good;
}

bool ep_driver_can_import_memory(EpDriverDevice* device, const EpHandleType* type) {
  return (device->memory_types & type->driver_type) != 0;
}

bool ep_driver_can_import_semaphore(EpDriverDevice* device, const EpHandleType* type) {
  return (device->semaphore_types & type->driver_type) != 0;
}

bool vulkan_device_lend(EpDriverDevice* device, const VulkanLoan* loan, EpError* error) {
  vulkan_device_end(device);
  device->borrowed = true;
  device->vk = loan->vk;
  device->physical = loan->physical;
  device->device = loan->device;
  device->queue_family = loan->queue_family;
  device->queue_count = 1;
  device->has_address = loan->has_address;
  if (!vulkan_device_adopt(device, loan->queue, error)) {
    vulkan_device_restore(device);
    return false;
  }
  if (device->vk.vkGetDeviceProcAddr(device->device, "vkWaitSemaphores") == NULL) {
    vulkan_device_restore(device);
    return ep_fail_argument(error, "additional_options: the device was not made for Vulkan 1.2");
  }
  for (size_t i = 0; i < DRIVER_EXTENSION_COUNT; ++i) {
    const char* call = driver_extensions[i].call;
    device->has[i] = call != NULL && device->vk.vkGetDeviceProcAddr(device->device, call) != NULL;
  }
  vulkan_probe(device);
  return true;
}

void vulkan_device_restore(EpDriverDevice* device) {
  vulkan_device_end(device);
  if (device->borrowed) {
    device->borrowed = false;
    (void)vulkan_describe(device->driver, device->own_physical, device);
  }
}
