#include "ep_context.h"

#include <stdlib.h>
#include <string.h>

#include "ep_config.h"
#include "ep_devices.h"
#include "ep_process.h"

static bool ep_context_add_devices(EpContext* context, EpError* error) {
  size_t count = ep_driver_device_count(context->driver);
  for (size_t i = 0; i < count && i < EP_MAX_DEVICES; ++i) {
    EpDevice* device = &context->devices[i];
    device->context = context;
    device->driver = ep_driver_device(context->driver, i);
    device->info = ep_driver_device_info(device->driver);
    /* Zero copy needs tensors on exactly this memory, alignment 0 included. */
    if (!ep_check(context->api,
                  context->api->CreateMemoryInfo_V2(
                      EP_NAME, device->info->memory_device_type, EP_VENDOR_ID,
                      (int32_t)device->info->memory_device_id, OrtDeviceMemoryType_DEFAULT, 0,
                      OrtDeviceAllocator, &device->memory_info),
                  error)) {
      return false;
    }
    device->memory_device = context->ep_api->MemoryInfo_GetMemoryDevice(device->memory_info);
    context->device_count = i + 1;
  }
  return true;
}

EpContext* ep_context_create(const OrtApi* api, uint32_t api_version, const OrtLogger* logger,
                             EpError* error) {
  const OrtEpApi* ep_api = api->GetEpApi();
  if (ep_api == NULL) {
    (void)ep_fail(error, ORT_NOT_IMPLEMENTED,
                  EP_NAME ": ONNX Runtime was built without plugin EPs");
    return NULL;
  }
  EpContext* context = calloc(1, sizeof *context);
  if (context == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  context->api = api;
  context->logger = logger;
  context->ep_api = ep_api;
  context->api_version = api_version;
  context->stamp =
      api_version < ORT_INTEROP_EP_API_VERSION ? api_version : ORT_INTEROP_EP_API_VERSION;
  atomic_init(&context->references, 1);
  ep_registry_init(&context->handles);
  context->driver = ep_process_acquire(error);
  if (context->driver == NULL || !ep_context_add_devices(context, error)) {
    ep_context_release(context);
    return NULL;
  }
  return context;
}

void ep_context_retain(EpContext* context) {
  atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
}

void ep_context_release(EpContext* context) {
  if (context == NULL ||
      atomic_fetch_sub_explicit(&context->references, 1, memory_order_acq_rel) != 1) {
    return;
  }
  for (size_t i = 0; i < context->device_count; ++i) {
    context->api->ReleaseMemoryInfo(context->devices[i].memory_info);
    if (context->devices[i].unlisted_hardware != NULL) {
      context->ep_api->ReleaseHardwareDevice(context->devices[i].unlisted_hardware);
    }
  }
  ep_process_release(context->driver);
  ep_registry_destroy(&context->handles);
  free(context);
}

EpDevice* ep_context_find_metadata(EpContext* context, const OrtKeyValuePairs* metadata) {
  const char* id = metadata == NULL ? NULL : context->api->GetKeyValue(metadata, EP_KEY_DEVICE_ID);
  char expected[EP_DEVICE_ID_CAPACITY];
  for (size_t i = 0; id != NULL && i < context->device_count; ++i) {
    ep_device_id(context->devices[i].info, expected);
    if (strcmp(id, expected) == 0) {
      return &context->devices[i];
    }
  }
  return NULL;
}

EpDevice* ep_context_find_device(EpContext* context, const OrtEpDevice* ep_device, EpError* error) {
  const char* name = context->api->EpDevice_EpName(ep_device);
  if (strcmp(name, EP_NAME) != 0) {
    (void)ep_fail_argument(error, "ep_device belongs to '%s', not to " EP_NAME, name);
    return NULL;
  }
  const OrtKeyValuePairs* metadata = context->api->EpDevice_EpMetadata(ep_device);
  EpDevice* device = ep_context_find_metadata(context, metadata);
  if (device == NULL) {
    const char* id =
        metadata == NULL ? NULL : context->api->GetKeyValue(metadata, EP_KEY_DEVICE_ID);
    (void)ep_fail_argument(error,
                           "ep_device has " EP_KEY_DEVICE_ID
                           " '%s', which is none of the "
                           "%zu devices of " EP_NAME,
                           id == NULL ? "" : id, context->device_count);
  }
  return device;
}

EpDevice* ep_context_find_memory(EpContext* context, const OrtMemoryDevice* memory_device) {
  for (size_t i = 0; i < context->device_count; ++i) {
    if (context->ep_api->MemoryDevice_AreEqual(context->devices[i].memory_device, memory_device)) {
      return &context->devices[i];
    }
  }
  return NULL;
}
