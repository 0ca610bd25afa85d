#include "ep_importer.h"

#include <stdlib.h>

#include "ep_config.h"
#include "ep_handles.h"
#include "ep_stream.h"
#include "ep_validate.h"

typedef struct EpImporter {
  OrtExternalResourceImporterImpl base;
  EpDevice* device;
  const OrtEpDevice* ep_device;
} EpImporter;

/* Each slot writes into an EpError and ends here. */
static OrtStatus* ep_importer_status(const EpImporter* importer, const EpError* error) {
  return ep_status(importer->device->context->api, error);
}

static bool ep_is_given(const void* argument, const char* name, EpError* error) {
  return argument != NULL || ep_fail_argument(error, "%s is null", name);
}

static bool ORT_API_CALL ep_importer_can_import_memory(const OrtExternalResourceImporterImpl* base,
                                                       OrtExternalMemoryHandleType ort_type) {
  const EpDevice* device = ((const EpImporter*)base)->device;
  const EpHandleType* type =
      ep_find_handle_type(ep_memory_types, (uint32_t)ort_type, device->context->api_version);
  return type != NULL && ep_driver_can_import_memory(device->driver, type);
}

static bool ORT_API_CALL ep_importer_can_import_semaphore(
    const OrtExternalResourceImporterImpl* base, OrtExternalSemaphoreType ort_type) {
  const EpDevice* device = ((const EpImporter*)base)->device;
  const EpHandleType* type =
      ep_find_handle_type(ep_semaphore_types, (uint32_t)ort_type, device->context->api_version);
  return type != NULL && ep_driver_can_import_semaphore(device->driver, type);
}

static OrtStatus* ORT_API_CALL ep_importer_import_memory(
    OrtExternalResourceImporterImpl* base, const OrtExternalMemoryDescriptor* descriptor,
    OrtExternalMemoryHandle** out) {
  EpImporter* importer = (EpImporter*)base;
  EpError error;
  ep_error_clear(&error);
  if (ep_is_given(out, "out_handle", &error)) {
    *out = NULL;
    (void)(ep_is_given(descriptor, "desc", &error) &&
           ep_memory_import(importer->device, importer->ep_device, descriptor, out, &error));
  }
  return ep_importer_status(importer, &error);
}

static void ORT_API_CALL ep_importer_release_memory(OrtExternalResourceImporterImpl* base,
                                                    OrtExternalMemoryHandle* handle) {
  (void)base;
  ep_memory_release(handle);
}

static OrtStatus* ORT_API_CALL ep_importer_create_tensor(
    OrtExternalResourceImporterImpl* base, const OrtExternalMemoryHandle* handle,
    const OrtExternalTensorDescriptor* descriptor, OrtValue** out) {
  EpImporter* importer = (EpImporter*)base;
  EpError error;
  ep_error_clear(&error);
  if (ep_is_given(out, "out_tensor", &error)) {
    *out = NULL;
    (void)(ep_is_given(handle, "mem_handle", &error) &&
           ep_is_given(descriptor, "tensor_desc", &error) &&
           ep_memory_create_tensor(importer->device, handle, descriptor, out, &error));
  }
  return ep_importer_status(importer, &error);
}

static OrtStatus* ORT_API_CALL ep_importer_import_semaphore(
    OrtExternalResourceImporterImpl* base, const OrtExternalSemaphoreDescriptor* descriptor,
    OrtExternalSemaphoreHandle** out) {
  EpImporter* importer = (EpImporter*)base;
  EpError error;
  ep_error_clear(&error);
  if (ep_is_given(out, "out_handle", &error)) {
    *out = NULL;
    (void)(ep_is_given(descriptor, "desc", &error) &&
           ep_semaphore_import(importer->device, importer->ep_device, descriptor, out, &error));
  }
  return ep_importer_status(importer, &error);
}

static void ORT_API_CALL ep_importer_release_semaphore(OrtExternalResourceImporterImpl* base,
                                                       OrtExternalSemaphoreHandle* handle) {
  (void)base;
  ep_semaphore_release(handle);
}

/* What waiting and signalling share: `enqueue` is the driver's function for one of them. */
static OrtStatus* ep_importer_enqueue(OrtExternalResourceImporterImpl* base,
                                      OrtExternalSemaphoreHandle* handle, OrtSyncStream* stream,
                                      uint64_t value,
                                      bool (*enqueue)(EpDriverSemaphore*, EpDriverStream*, uint64_t,
                                                      EpError*)) {
  EpImporter* importer = (EpImporter*)base;
  EpDriverStream* driver_stream = NULL;
  EpError error;
  ep_error_clear(&error);
  (void)(ep_is_given(handle, "handle", &error) &&
         ep_stream_of_device(importer->device, stream, &driver_stream, &error) &&
         ep_semaphore_enqueue(importer->device, handle, driver_stream, value, enqueue, &error));
  return ep_importer_status(importer, &error);
}

static OrtStatus* ORT_API_CALL ep_importer_wait_semaphore(OrtExternalResourceImporterImpl* base,
                                                          OrtExternalSemaphoreHandle* handle,
                                                          OrtSyncStream* stream, uint64_t value) {
  return ep_importer_enqueue(base, handle, stream, value, ep_driver_semaphore_wait);
}

static OrtStatus* ORT_API_CALL ep_importer_signal_semaphore(OrtExternalResourceImporterImpl* base,
                                                            OrtExternalSemaphoreHandle* handle,
                                                            OrtSyncStream* stream, uint64_t value) {
  return ep_importer_enqueue(base, handle, stream, value, ep_driver_semaphore_signal);
}

static void ORT_API_CALL ep_importer_release(OrtExternalResourceImporterImpl* base) {
  EpImporter* importer = (EpImporter*)base;
  EpContext* context = importer->device->context;
  free(importer);
  ep_context_release(context);
}

OrtExternalResourceImporterImpl* ep_importer_create(EpDevice* device, const OrtEpDevice* ep_device,
                                                    EpError* error) {
  EpImporter* importer = calloc(1, sizeof *importer);
  if (importer == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  ep_context_retain(device->context);
  importer->device = device;
  importer->ep_device = ep_device;
  OrtExternalResourceImporterImpl* base = &importer->base;
  base->ort_version_supported = device->context->stamp;
  base->CanImportMemory = ep_importer_can_import_memory;
  base->ImportMemory = ep_importer_import_memory;
  base->ReleaseMemory = ep_importer_release_memory;
  base->CreateTensorFromMemory = ep_importer_create_tensor;
  base->CanImportSemaphore = ep_importer_can_import_semaphore;
  base->ImportSemaphore = ep_importer_import_semaphore;
  base->ReleaseSemaphore = ep_importer_release_semaphore;
  base->WaitSemaphore = ep_importer_wait_semaphore;
  base->SignalSemaphore = ep_importer_signal_semaphore;
  base->Release = ep_importer_release;
  return base;
}
