#include "ep_factory.h"

#include <stdlib.h>

#include "ep_allocator.h"
#include "ep_config.h"
#include "ep_devices.h"
#include "ep_importer.h"
#include "ep_provider.h"
#include "ep_stream.h"
#include "ep_transfer.h"

typedef struct EpFactory {
  OrtEpFactory base;
#if ORT_API_VERSION < 25
  /* ONNX Runtime reads the graphics slots of 1.25 whatever the stamp says: let it find null. */
  void* graphics_slots[2];
#endif
  EpContext* context;
} EpFactory;

static EpContext* ep_factory_context(const OrtEpFactory* base) {
  return ((const EpFactory*)base)->context;
}

static const char* ORT_API_CALL ep_factory_get_name(const OrtEpFactory* base) {
  (void)base;
  return EP_NAME;
}

static const char* ORT_API_CALL ep_factory_get_vendor(const OrtEpFactory* base) {
  (void)base;
  return EP_VENDOR;
}

static uint32_t ORT_API_CALL ep_factory_get_vendor_id(const OrtEpFactory* base) {
  (void)base;
  return EP_VENDOR_ID;
}

static const char* ORT_API_CALL ep_factory_get_version(const OrtEpFactory* base) {
  (void)base;
  return EP_VERSION;
}

static bool ORT_API_CALL ep_factory_is_stream_aware(const OrtEpFactory* base) {
  (void)base;
  return true;
}

static OrtStatus* ORT_API_CALL ep_factory_get_supported_devices(
    OrtEpFactory* base, const OrtHardwareDevice* const* hardware, size_t hardware_count,
    OrtEpDevice** ep_devices, size_t max_ep_devices, size_t* ep_device_count) {
  EpContext* context = ep_factory_context(base);
  EpError error;
  ep_error_clear(&error);
  (void)ep_devices_offer(context, base, hardware, hardware_count, ep_devices, max_ep_devices,
                         ep_device_count, &error);
  return ep_status(context->api, &error);
}

static OrtStatus* ORT_API_CALL ep_factory_create_ep(OrtEpFactory* base,
                                                    const OrtHardwareDevice* const* hardware,
                                                    const OrtKeyValuePairs* const* metadata,
                                                    size_t device_count,
                                                    const OrtSessionOptions* session_options,
                                                    const OrtLogger* logger, OrtEp** ep) {
  (void)hardware;
  (void)session_options;
  (void)logger;
  EpContext* context = ep_factory_context(base);
  EpError error;
  ep_error_clear(&error);
  *ep = NULL;
  EpDevice* device = device_count == 1 ? ep_context_find_metadata(context, metadata[0]) : NULL;
  if (device_count != 1) {
    (void)ep_fail_argument(&error, EP_NAME ": num_devices is %zu; a session uses one device",
                           device_count);
  } else if (device == NULL) {
    (void)ep_fail_argument(
        &error, EP_NAME ": ep_metadata_pairs[0] has no " EP_KEY_DEVICE_ID " of a device of the EP");
  } else {
    *ep = ep_provider_create(device, &error);
  }
  return ep_status(context->api, &error);
}

static void ORT_API_CALL ep_factory_release_ep(OrtEpFactory* base, OrtEp* ep) {
  (void)base;
  ep_provider_release(ep);
}

static OrtStatus* ORT_API_CALL ep_factory_validate_compiled_model(
    OrtEpFactory* base, const OrtHardwareDevice* const* hardware, size_t device_count,
    const char* compatibility_info, OrtCompiledModelCompatibility* compatibility) {
  (void)base;
  (void)hardware;
  (void)device_count;
  (void)compatibility_info;
  *compatibility = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_factory_create_allocator(OrtEpFactory* base,
                                                           const OrtMemoryInfo* memory_info,
                                                           const OrtKeyValuePairs* options,
                                                           OrtAllocator** allocator) {
  (void)options;
  EpContext* context = ep_factory_context(base);
  EpError error;
  ep_error_clear(&error);
  *allocator = NULL;
  EpDevice* device = memory_info == NULL
                         ? NULL
                         : ep_context_find_memory(
                               context, context->ep_api->MemoryInfo_GetMemoryDevice(memory_info));
  if (device == NULL) {
    (void)ep_fail_argument(&error,
                           "memory_info is %s; " EP_NAME
                           " allocates the default memory "
                           "of its own devices only",
                           memory_info == NULL ? "null" : "of another device or memory type");
  } else {
    *allocator = ep_allocator_create(device, &error);
  }
  return ep_status(context->api, &error);
}

static void ORT_API_CALL ep_factory_release_allocator(OrtEpFactory* base, OrtAllocator* allocator) {
  (void)base;
  ep_allocator_release(allocator);
}

static OrtStatus* ORT_API_CALL ep_factory_create_data_transfer(OrtEpFactory* base,
                                                               OrtDataTransferImpl** transfer) {
  EpContext* context = ep_factory_context(base);
  EpError error;
  ep_error_clear(&error);
  *transfer = ep_transfer_create(context, &error);
  return ep_status(context->api, &error);
}

static OrtStatus* ORT_API_CALL ep_factory_create_stream(OrtEpFactory* base,
                                                        const OrtMemoryDevice* memory_device,
                                                        const OrtKeyValuePairs* options,
                                                        OrtSyncStreamImpl** stream) {
  (void)options;
  EpContext* context = ep_factory_context(base);
  EpError error;
  ep_error_clear(&error);
  *stream = NULL;
  EpDevice* device = memory_device == NULL ? NULL : ep_context_find_memory(context, memory_device);
  if (device == NULL) {
    (void)ep_fail_argument(&error,
                           "memory_device is %s; " EP_NAME
                           " makes streams for the default "
                           "memory of its own devices only",
                           memory_device == NULL ? "null" : "of another device or memory type");
  } else {
    *stream = ep_stream_create(device, NULL, &error);
  }
  return ep_status(context->api, &error);
}

static OrtStatus* ORT_API_CALL ep_factory_create_importer(
    OrtEpFactory* base, const OrtEpDevice* ep_device, OrtExternalResourceImporterImpl** importer) {
  EpContext* context = ep_factory_context(base);
  EpError error;
  ep_error_clear(&error);
  *importer = NULL;
  if (ep_device == NULL) {
    (void)ep_fail_argument(&error, "ep_device is null");
  } else {
    EpDevice* device = ep_context_find_device(context, ep_device, &error);
    if (device != NULL) {
      *importer = ep_importer_create(device, ep_device, &error);
    }
  }
  return ep_status(context->api, &error);
}

#if ORT_API_VERSION >= 25
static OrtStatus* ORT_API_CALL ep_factory_init_graphics(OrtEpFactory* base,
                                                        const OrtEpDevice* ep_device,
                                                        const OrtGraphicsInteropConfig* config) {
  EpContext* context = ep_factory_context(base);
  EpError error;
  ep_error_clear(&error);
  if (ep_device == NULL || config == NULL) {
    (void)ep_fail_argument(&error, "%s is null", ep_device == NULL ? "ep_device" : "config");
  } else if (config->version < 25) {
    (void)ep_fail_argument(&error,
                           "OrtGraphicsInteropConfig: version is %u; the structure exists "
                           "since version 25, set it to ORT_API_VERSION",
                           (unsigned)config->version);
  } else {
    EpDevice* device = ep_context_find_device(context, ep_device, &error);
    if (device != NULL) {
      (void)ep_driver_graphics_init(device->driver, context->api, config, &error);
    }
  }
  return ep_status(context->api, &error);
}

static OrtStatus* ORT_API_CALL ep_factory_deinit_graphics(OrtEpFactory* base,
                                                          const OrtEpDevice* ep_device) {
  EpContext* context = ep_factory_context(base);
  EpError error;
  ep_error_clear(&error);
  if (ep_device == NULL) {
    (void)ep_fail_argument(&error, "ep_device is null");
  } else {
    EpDevice* device = ep_context_find_device(context, ep_device, &error);
    if (device != NULL) {
      (void)ep_driver_graphics_deinit(device->driver, &error);
    }
  }
  return ep_status(context->api, &error);
}
#endif

OrtEpFactory* ep_factory_create(EpContext* context, EpError* error) {
  EpFactory* factory = calloc(1, sizeof *factory);
  if (factory == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  factory->context = context;
  ep_context_retain(context);
  OrtEpFactory* base = &factory->base;
  base->ort_version_supported = context->stamp;
  base->GetName = ep_factory_get_name;
  base->GetVendor = ep_factory_get_vendor;
  base->GetSupportedDevices = ep_factory_get_supported_devices;
  base->CreateEp = ep_factory_create_ep;
  base->ReleaseEp = ep_factory_release_ep;
  base->GetVendorId = ep_factory_get_vendor_id;
  base->GetVersion = ep_factory_get_version;
  base->ValidateCompiledModelCompatibilityInfo = ep_factory_validate_compiled_model;
  base->CreateAllocator = ep_factory_create_allocator;
  base->ReleaseAllocator = ep_factory_release_allocator;
  base->CreateDataTransfer = ep_factory_create_data_transfer;
  base->IsStreamAware = ep_factory_is_stream_aware;
  base->CreateSyncStreamForDevice = ep_factory_create_stream;
  base->CreateExternalResourceImporterForDevice = ep_factory_create_importer;
#if ORT_API_VERSION >= 25
  if (context->stamp >= 25) {
    base->InitGraphicsInterop = ep_factory_init_graphics;
    base->DeinitGraphicsInterop = ep_factory_deinit_graphics;
  }
#endif
  return base;
}

void ep_factory_release(OrtEpFactory* base) {
  EpFactory* factory = (EpFactory*)base;
  if (factory != NULL) {
    ep_context_release(factory->context);
    free(factory);
  }
}
