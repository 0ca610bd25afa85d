/* The loader, the instance, and what the physical devices are. */
#include <stdio.h>
#include <stdlib.h>

#include "sim_vulkan.h"

#define SIM_MAX_DEVICES 8

/* Extensions' functions are found by name only. */
VkResult DRIVER_CALL vkGetMemoryHostPointerPropertiesEXT(VkDevice,
                                                         VkExternalMemoryHandleTypeFlagBits,
                                                         const void*,
                                                         VkMemoryHostPointerPropertiesEXT*);
VkResult DRIVER_CALL vkImportSemaphoreFdKHR(VkDevice, const VkImportSemaphoreFdInfoKHR*);
VkResult DRIVER_CALL vkGetMemoryWin32HandlePropertiesKHR(VkDevice,
                                                         VkExternalMemoryHandleTypeFlagBits, void*,
                                                         VkMemoryWin32HandlePropertiesKHR*);
VkResult DRIVER_CALL vkImportSemaphoreWin32HandleKHR(VkDevice,
                                                     const VkImportSemaphoreWin32HandleInfoKHR*);

#ifdef _WIN32
#define SIM_MEMORY_EXTENSION "VK_KHR_external_memory_win32"
#define SIM_SEMAPHORE_EXTENSION "VK_KHR_external_semaphore_win32"
#else
#define SIM_MEMORY_EXTENSION "VK_KHR_external_memory_fd"
#define SIM_SEMAPHORE_EXTENSION "VK_KHR_external_semaphore_fd"
#endif

static const char* const sim_extensions[] = {SIM_MEMORY_EXTENSION, SIM_SEMAPHORE_EXTENSION,
                                             "VK_EXT_external_memory_host", "VK_EXT_pci_bus_info"};
static char sim_physical[SIM_MAX_DEVICES];

const void* sim_chained(const void* next, VkStructureType type) {
  typedef struct SimHeader {
    VkStructureType sType;
    const void* pNext;
  } SimHeader;
  const SimHeader* header = next;
  while (header != NULL && header->sType != type) {
    header = header->pNext;
  }
  return header;
}

static void* sim_out(void* next, VkStructureType type) {
  return (void*)(uintptr_t)sim_chained(next, type);
}

static uint32_t sim_device_count(void) {
  return (uint32_t)mock_option("devices", 1);
}

static uint32_t sim_index(VkPhysicalDevice device) {
  return (uint32_t)((char*)device - sim_physical);
}

PFN_vkVoidFunction sim_vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  (void)instance;
  (void)name;
  return NULL;
}

PFN_vkVoidFunction sim_vkGetDeviceProcAddr(VkDevice device, const char* name) {
  static const struct {
    const char* name;
    PFN_vkVoidFunction call;
  } extensions[] = {
      {"vkGetMemoryHostPointerPropertiesEXT",
       (PFN_vkVoidFunction)vkGetMemoryHostPointerPropertiesEXT},
#ifdef _WIN32
      {"vkGetMemoryWin32HandlePropertiesKHR",
       (PFN_vkVoidFunction)vkGetMemoryWin32HandlePropertiesKHR},
      {"vkImportSemaphoreWin32HandleKHR", (PFN_vkVoidFunction)vkImportSemaphoreWin32HandleKHR},
#else
      {"vkImportSemaphoreFdKHR", (PFN_vkVoidFunction)vkImportSemaphoreFdKHR},
#endif
  };
  (void)device;
  for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; ++i) {
    if (strcmp(extensions[i].name, name) == 0) {
      return extensions[i].call;
    }
  }
  return NULL;
}

VkResult sim_vkEnumerateInstanceVersion(uint32_t* version) {
  *version = (uint32_t)mock_option("instance_version", VK_API_VERSION_1_2);
  return VK_SUCCESS;
}

VkResult sim_vkCreateInstance(const VkInstanceCreateInfo* info,
                              const VkAllocationCallbacks* allocator, VkInstance* instance) {
  (void)allocator;
  if (info->pApplicationInfo == NULL || info->pApplicationInfo->apiVersion < VK_API_VERSION_1_2) {
    mock_offend("vkCreateInstance: the application does not ask for Vulkan 1.2");
  }
  void* object = calloc(1, 1);
  mock_object_add("instance", object, 1);
  *instance = object;
  return VK_SUCCESS;
}

void sim_vkDestroyInstance(VkInstance instance, const VkAllocationCallbacks* allocator) {
  (void)allocator;
  if (mock_live("device") != 0) {
    mock_offend("vkDestroyInstance: a device is left");
  }
  (void)mock_object_remove("instance", instance);
  free(instance);
}

VkResult sim_vkEnumeratePhysicalDevices(VkInstance instance, uint32_t* count,
                                        VkPhysicalDevice* devices) {
  (void)instance;
  uint32_t there = sim_device_count();
  if (devices == NULL) {
    *count = there;
    return VK_SUCCESS;
  }
  for (uint32_t i = 0; i < *count && i < there; ++i) {
    devices[i] = (VkPhysicalDevice)&sim_physical[i];
  }
  *count = *count < there ? *count : there;
  return VK_SUCCESS;
}

void sim_vkGetPhysicalDeviceProperties2(VkPhysicalDevice device,
                                        VkPhysicalDeviceProperties2* properties) {
  uint32_t index = sim_index(device);
  VkPhysicalDeviceProperties* basic = &properties->properties;
  memset(basic, 0, sizeof *basic);
  basic->apiVersion = (uint32_t)mock_option("device_version", VK_API_VERSION_1_2);
  basic->vendorID = 0x1234;
  basic->deviceID = 0x100 + index;
  basic->deviceType = (VkPhysicalDeviceType)mock_option("device_type", 2);
  (void)snprintf(basic->deviceName, sizeof basic->deviceName, "Mock GPU %u", (unsigned)index);
  VkPhysicalDeviceIDProperties* id =
      sim_out(properties->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
  if (id != NULL) {
    memset(id->deviceUUID, (int)(0x10 + index), sizeof id->deviceUUID);
    memset(id->deviceLUID, 0, sizeof id->deviceLUID);
    id->deviceLUID[0] = (uint8_t)(mock_option("luid", 0) + (long)index);
    id->deviceLUIDValid = mock_option("luid", 0) != 0;
  }
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT* host = sim_out(
      properties->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT);
  if (host != NULL) {
    host->minImportedHostPointerAlignment = 4096;
  }
  VkPhysicalDevicePCIBusInfoPropertiesEXT* pci =
      sim_out(properties->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT);
  if (pci != NULL) {
    pci->pciDomain = 0;
    pci->pciBus = 0x0a + index;
    pci->pciDevice = 0;
    pci->pciFunction = 0;
  }
}

void sim_vkGetPhysicalDeviceFeatures2(VkPhysicalDevice device,
                                      VkPhysicalDeviceFeatures2* features) {
  (void)device;
  memset(&features->features, 0, sizeof features->features);
  VkPhysicalDeviceTimelineSemaphoreFeatures* timeline =
      sim_out(features->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
  if (timeline != NULL) {
    timeline->timelineSemaphore = 1;
  }
  VkPhysicalDeviceBufferDeviceAddressFeatures* address =
      sim_out(features->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES);
  if (address != NULL) {
    address->bufferDeviceAddress = (VkBool32)mock_option("device_address", 1);
  }
}

void sim_vkGetPhysicalDeviceMemoryProperties(VkPhysicalDevice device,
                                             VkPhysicalDeviceMemoryProperties* properties) {
  (void)device;
  memset(properties, 0, sizeof *properties);
  properties->memoryTypeCount = 2;
  properties->memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  properties->memoryTypes[1].propertyFlags =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  properties->memoryTypes[1].heapIndex = 1;
  properties->memoryHeapCount = 2;
}

void sim_vkGetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice device, uint32_t* count,
                                                  VkQueueFamilyProperties* families) {
  (void)device;
  if (families != NULL && *count > 0) {
    memset(families, 0, sizeof *families);
    families[0].queueFlags = VK_QUEUE_COMPUTE_BIT;
    families[0].queueCount = (uint32_t)mock_option("queues", 4);
  }
  *count = 1;
}

VkResult sim_vkEnumerateDeviceExtensionProperties(VkPhysicalDevice device, const char* layer,
                                                  uint32_t* count,
                                                  VkExtensionProperties* properties) {
  (void)device;
  (void)layer;
  uint32_t there = sizeof sim_extensions / sizeof sim_extensions[0];
  if (mock_option("extensions", 1) == 0) {
    there = 0;
  }
  for (uint32_t i = 0; properties != NULL && i < there && i < *count; ++i) {
    (void)snprintf(properties[i].extensionName, sizeof properties[i].extensionName, "%s",
                   sim_extensions[i]);
    properties[i].specVersion = 1;
  }
  *count = there;
  return VK_SUCCESS;
}

void sim_vkGetPhysicalDeviceExternalBufferProperties(VkPhysicalDevice device,
                                                     const VkPhysicalDeviceExternalBufferInfo* info,
                                                     VkExternalBufferProperties* properties) {
  (void)device;
  VkExternalMemoryProperties* found = &properties->externalMemoryProperties;
  memset(found, 0, sizeof *found);
  if ((mock_option("memory_types", 0xffff) & (long)info->handleType) != 0) {
    found->externalMemoryFeatures = VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    found->compatibleHandleTypes = info->handleType;
  }
  if (mock_option("dedicated_only", 0) != 0) {
    found->externalMemoryFeatures |= VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
  }
}

void sim_vkGetPhysicalDeviceExternalSemaphoreProperties(
    VkPhysicalDevice device, const VkPhysicalDeviceExternalSemaphoreInfo* info,
    VkExternalSemaphoreProperties* properties) {
  (void)device;
  const VkSemaphoreTypeCreateInfo* type =
      sim_chained(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  bool timeline = type != NULL && type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE;
  /* Binary semaphores always import: a driver that asks about those gets the wrong answer. */
  bool importable = !timeline || mock_option("timeline", 1) != 0;
  properties->externalSemaphoreFeatures =
      importable ? VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT : 0;
}

VkResult sim_vkCreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                            const VkAllocationCallbacks* allocator, VkDevice* device) {
  (void)physical;
  (void)allocator;
  const VkPhysicalDeviceTimelineSemaphoreFeatures* timeline =
      sim_chained(info->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
  if (timeline == NULL || timeline->timelineSemaphore == 0) {
    mock_offend("vkCreateDevice: timelineSemaphore is not enabled");
  }
  void* object = calloc(1, 1);
  mock_object_add("device", object, 1);
  sim_queues_start();
  *device = object;
  return VK_SUCCESS;
}

void sim_vkDestroyDevice(VkDevice device, const VkAllocationCallbacks* allocator) {
  (void)allocator;
  static const char* const kinds[] = {"memory",    "external memory",    "buffer",
                                      "semaphore", "external semaphore", "command pool"};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
    if (mock_live("device") == 1 && mock_live(kinds[i]) != 0) {
      mock_offend("vkDestroyDevice: a %s is left", kinds[i]);
    }
  }
  (void)mock_object_remove("device", device);
  free(device);
  if (mock_live("device") == 0) {
    sim_queues_stop();
  }
}
