#include "ep_devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ep_config.h"
#include "ep_library.h"
#include "ep_validate.h"

#define EP_TYPE_NAMES_CAPACITY 512

void ep_device_id(const EpDeviceInfo* info, char text[EP_DEVICE_ID_CAPACITY]) {
  (void)snprintf(text, EP_DEVICE_ID_CAPACITY, "%" PRIu32, info->memory_device_id);
}

void ep_uuid_text(const uint8_t uuid[16], char text[EP_UUID_CAPACITY]) {
  for (size_t i = 0; i < 16; ++i) {
    (void)snprintf(text + 2 * i, 3, "%02x", (unsigned)uuid[i]);
  }
}

/* Whether an option, if it is there, is the device's `own` value, which may be null. */
static bool ep_option_matches(const OrtApi* api, const OrtKeyValuePairs* options, const char* key,
                              const char* own, const EpDeviceInfo* info, EpError* error) {
  const char* given = options == NULL ? NULL : api->GetKeyValue(options, key);
  return given == NULL || (own != NULL && strcmp(given, own) == 0) ||
         ep_fail_argument(error,
                          "additional_options: %s is '%s', but ep_device is %s, whose %s is '%s'",
                          key, given, info->name, key, own == NULL ? "not known" : own);
}

bool ep_device_is_named(const EpDeviceInfo* info, const OrtApi* api,
                        const OrtKeyValuePairs* options, EpError* error) {
  char uuid[EP_UUID_CAPACITY];
  char luid[24];
  ep_uuid_text(info->uuid, uuid);
  (void)snprintf(luid, sizeof luid, "%" PRIu64, info->luid);
  return ep_option_matches(api, options, EP_KEY_UUID, info->has_uuid ? uuid : NULL, info, error) &&
         ep_option_matches(api, options, EP_KEY_LUID, info->has_luid ? luid : NULL, info, error);
}

/* Whether `value` of a hardware device's metadata is known and differs from the driver's. */
static bool ep_metadata_differs(const OrtApi* api, const OrtHardwareDevice* hardware,
                                const char* key, const char* value) {
  const OrtKeyValuePairs* metadata = api->HardwareDevice_Metadata(hardware);
  const char* listed = metadata == NULL ? NULL : api->GetKeyValue(metadata, key);
  return listed != NULL && value != NULL && strcmp(listed, value) != 0;
}

static bool ep_is_hardware(const OrtApi* api, const EpDeviceInfo* info,
                           const OrtHardwareDevice* hardware) {
  char luid[24];
  (void)snprintf(luid, sizeof luid, "%" PRIu64, info->luid);
  return api->HardwareDevice_Type(hardware) == info->hardware_type &&
         (info->hardware_vendor_id == 0 ||
          api->HardwareDevice_VendorId(hardware) == info->hardware_vendor_id) &&
         (info->hardware_device_id == 0 ||
          api->HardwareDevice_DeviceId(hardware) == info->hardware_device_id) &&
         !ep_metadata_differs(api, hardware, "LUID", info->has_luid ? luid : NULL) &&
         !ep_metadata_differs(api, hardware, "pci_bus_id", info->pci_bus_id);
}

static void ep_join_names(char* text, const EpHandleType* type) {
  size_t used = strlen(text);
  (void)snprintf(text + used, EP_TYPE_NAMES_CAPACITY - used, "%s%s", used == 0 ? "" : ",",
                 type->name);
}

static void ep_describe_types(const EpDevice* device, OrtKeyValuePairs* metadata) {
  const OrtApi* api = device->context->api;
  uint32_t api_version = device->context->api_version;
  char memory[EP_TYPE_NAMES_CAPACITY] = "";
  char semaphores[EP_TYPE_NAMES_CAPACITY] = "";
  for (const EpHandleType* type = ep_memory_types; type->name != NULL; ++type) {
    if (ep_handle_type_exists(type, api_version) &&
        ep_driver_can_import_memory(device->driver, type)) {
      ep_join_names(memory, type);
    }
  }
  for (const EpHandleType* type = ep_semaphore_types; type->name != NULL; ++type) {
    if (ep_handle_type_exists(type, api_version) &&
        ep_driver_can_import_semaphore(device->driver, type)) {
      ep_join_names(semaphores, type);
    }
  }
  api->AddKeyValuePair(metadata, EP_KEY_MEMORY_TYPES, memory);
  api->AddKeyValuePair(metadata, EP_KEY_SEMAPHORE_TYPES, semaphores);
}

static void ep_describe(const EpDevice* device, OrtKeyValuePairs* metadata) {
  const OrtApi* api = device->context->api;
  const EpDeviceInfo* info = device->info;
  char text[EP_UUID_CAPACITY];
  if (info->has_uuid) {
    ep_uuid_text(info->uuid, text);
    api->AddKeyValuePair(metadata, EP_KEY_UUID, text);
  }
  if (info->has_luid) {
    (void)snprintf(text, sizeof text, "%" PRIu64, info->luid);
    api->AddKeyValuePair(metadata, EP_KEY_LUID, text);
  }
  char id[EP_DEVICE_ID_CAPACITY];
  ep_device_id(info, id);
  api->AddKeyValuePair(metadata, EP_KEY_DEVICE_ID, id);
  api->AddKeyValuePair(metadata, EP_KEY_HOST_ACCESS, info->host_access ? "map" : "none");
  ep_describe_types(device, metadata);
  char* library = ep_library_path();
  if (library != NULL) {
    api->AddKeyValuePair(metadata, EP_KEY_LIBRARY, library);
    free(library);
  }
}

/* The EP device for `device` on `hardware`; null, with `error` written, on failure. */
static OrtEpDevice* ep_device_create(const EpDevice* device, OrtEpFactory* factory,
                                     const OrtHardwareDevice* hardware, EpError* error) {
  const OrtApi* api = device->context->api;
  const OrtEpApi* ep_api = device->context->ep_api;
  OrtKeyValuePairs* metadata = NULL;
  api->CreateKeyValuePairs(&metadata);
  ep_describe(device, metadata);
  OrtEpDevice* ep_device = NULL;
  bool created =
      ep_check(api, ep_api->CreateEpDevice(factory, hardware, metadata, NULL, &ep_device), error);
  api->ReleaseKeyValuePairs(metadata);
  if (!created) {
    return NULL;
  }
  if (!ep_check(api, ep_api->EpDevice_AddAllocatorInfo(ep_device, device->memory_info), error)) {
    ep_api->ReleaseEpDevice(ep_device);
    return NULL;
  }
  return ep_device;
}

/* As ep_device_create(), on a hardware device that ONNX Runtime did not find. */
static OrtEpDevice* ep_device_create_unlisted(EpDevice* device, OrtEpFactory* factory,
                                              EpError* error) {
  const EpDeviceInfo* info = device->info;
  if (device->unlisted_hardware == NULL &&
      !ep_check(device->context->api,
                device->context->ep_api->CreateHardwareDevice(
                    info->hardware_type, info->hardware_vendor_id, info->hardware_device_id,
                    info->hardware_vendor, NULL, &device->unlisted_hardware),
                error)) {
    return NULL;
  }
  return ep_device_create(device, factory, device->unlisted_hardware, error);
}

static const OrtHardwareDevice* ep_find_hardware(const OrtApi* api, const EpDeviceInfo* info,
                                                 const OrtHardwareDevice* const* hardware,
                                                 size_t hardware_count) {
  for (size_t i = 0; i < hardware_count; ++i) {
    if (ep_is_hardware(api, info, hardware[i])) {
      return hardware[i];
    }
  }
  return NULL;
}

bool ep_devices_offer(EpContext* context, OrtEpFactory* factory,
                      const OrtHardwareDevice* const* hardware, size_t hardware_count,
                      OrtEpDevice** ep_devices, size_t max_ep_devices, size_t* ep_device_count,
                      EpError* error) {
  size_t count = 0;
  for (size_t i = 0; i < context->device_count && count < max_ep_devices; ++i) {
    EpDevice* device = &context->devices[i];
    const OrtHardwareDevice* listed =
        ep_find_hardware(context->api, device->info, hardware, hardware_count);
    ep_devices[count] = listed != NULL ? ep_device_create(device, factory, listed, error)
                                       : ep_device_create_unlisted(device, factory, error);
    if (ep_devices[count] == NULL) {
      while (count > 0) {
        --count;
        context->ep_api->ReleaseEpDevice(ep_devices[count]);
        ep_devices[count] = NULL;
      }
      *ep_device_count = 0;
      return false;
    }
    ++count;
  }
  *ep_device_count = count;
  return true;
}
