#include "ep_handles.h"

#include <stdlib.h>

#include "ep_config.h"
#include "ep_validate.h"

/* The driver's object behind a handle: exactly one of the two. */
typedef struct EpResource {
  atomic_size_t references;
  EpDevice* device;
  EpDriverMemory* memory;
  size_t region_bytes;
  EpDriverSemaphore* semaphore;
} EpResource;

/* What ONNX Runtime holds: the member that the resource is of. */
typedef struct EpHandle {
  union {
    OrtExternalMemoryHandle memory;
    OrtExternalSemaphoreHandle semaphore;
  } base;
  EpResource* resource;
} EpHandle;

/* Gives the memory back when ONNX Runtime frees the tensor that lies in it. */
typedef struct EpTensorDeleter {
  OrtAllocator base;
  EpResource* resource;
} EpTensorDeleter;

static EpResource* ep_resource_create(EpDevice* device, EpError* error) {
  EpResource* resource = calloc(1, sizeof *resource);
  if (resource == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  atomic_init(&resource->references, 1);
  resource->device = device;
  ep_context_retain(device->context);
  return resource;
}

static void ep_resource_release(EpResource* resource) {
  if (resource == NULL ||
      atomic_fetch_sub_explicit(&resource->references, 1, memory_order_acq_rel) != 1) {
    return;
  }
  EpContext* context = resource->device->context;
  if (resource->memory != NULL) {
    ep_driver_memory_release(resource->memory);
  }
  if (resource->semaphore != NULL) {
    ep_driver_semaphore_release(resource->semaphore);
  }
  free(resource);
  ep_context_release(context);
}

static void ep_resource_found(uintptr_t value, void* argument) {
  EpResource* resource = (EpResource*)value;
  atomic_fetch_add_explicit(&resource->references, 1, memory_order_relaxed);
  *(EpResource**)argument = resource;
}

/* A reference to the resource of the live handle `handle`, which is not read before it is known to
 * be one; null, with `error` written, if it is not. */
static EpResource* ep_resource_of(EpDevice* device, const void* handle, bool memory,
                                  const char* name, EpError* error) {
  EpResource* resource = NULL;
  if (!ep_registry_find(&device->context->handles, handle, ep_resource_found, &resource) ||
      (resource->memory != NULL) != memory) {
    (void)ep_fail_argument(error, "%s %p is not a live %s handle of " EP_NAME, name, handle,
                           memory ? "memory" : "semaphore");
  } else if (resource->device != device) {
    (void)ep_fail_argument(error, "%s is of device %u (%s), the importer is for device %u (%s)",
                           name, (unsigned)resource->device->info->memory_device_id,
                           resource->device->info->name, (unsigned)device->info->memory_device_id,
                           device->info->name);
  } else {
    return resource;
  }
  ep_resource_release(resource);
  return NULL;
}

/* Replaces a descriptor of the application by a duplicate, which the driver may consume. */
static bool ep_native_duplicate(const EpHandleType* type, EpNativeHandle* native, EpError* error) {
  if (type->kind != EP_NATIVE_FD) {
    return true;
  }
  int fd = native->fd;
  return ep_fd_duplicate(fd, &native->fd) ||
         ep_fail_argument(error, "native_handle is %d, not an open file descriptor", fd);
}

/* A handle without a driver's object yet, for `native`, which becomes a duplicate. */
static EpHandle* ep_handle_create(EpDevice* device, const EpHandleType* type,
                                  EpNativeHandle* native, EpError* error) {
  EpResource* resource = ep_resource_create(device, error);
  EpHandle* handle = calloc(1, sizeof *handle);
  if (resource == NULL || handle == NULL) {
    (void)ep_out_of_memory(error);
  } else if (ep_native_duplicate(type, native, error)) {
    handle->resource = resource;
    return handle;
  }
  ep_resource_release(resource);
  free(handle);
  return NULL;
}

static void ep_handle_destroy(EpHandle* handle) {
  ep_resource_release(handle->resource);
  free(handle);
}

/* Makes a handle known whose import was `good`. Else undoes everything, and closes the duplicate
 * unless the driver has `consumed` it. */
static bool ep_handle_finish(EpHandle* handle, const EpHandleType* type, EpNativeHandle native,
                             bool good, bool consumed, EpError* error) {
  if (!good && !consumed && type->kind == EP_NATIVE_FD) {
    ep_fd_close(native.fd);
  }
  EpRegistry* handles = &handle->resource->device->context->handles;
  if (good && !ep_registry_add(handles, handle, (uintptr_t)handle->resource)) {
    good = ep_out_of_memory(error);
  }
  if (!good) {
    ep_handle_destroy(handle);
  }
  return good;
}

/* Null is ignored. */
static void ep_handle_release(EpHandle* handle) {
  if (handle != NULL) {
    (void)ep_registry_remove(&handle->resource->device->context->handles, handle, NULL);
    ep_handle_destroy(handle);
  }
}

bool ep_memory_import(EpDevice* device, const OrtEpDevice* ep_device,
                      const OrtExternalMemoryDescriptor* descriptor, OrtExternalMemoryHandle** out,
                      EpError* error) {
  const EpContext* context = device->context;
  bool consumed = false;
  EpMemoryRequest request = {.consumed = &consumed};
  if (!ep_validate_memory(descriptor, context->api_version, &request, error)) {
    return false;
  }
  if (!ep_driver_can_import_memory(device->driver, request.type)) {
    return ep_fail(error, ORT_NOT_IMPLEMENTED, "handle_type %s cannot be imported by %s",
                   request.type->name, device->info->name);
  }
  EpHandle* handle = ep_handle_create(device, request.type, &request.native, error);
  if (handle == NULL) {
    return false;
  }
  EpResource* resource = handle->resource;
  resource->region_bytes = request.size_bytes - request.offset_bytes;
  bool good = ep_driver_import_memory(device->driver, &request, &resource->memory, error);
  if (!ep_handle_finish(handle, request.type, request.native, good, consumed, error)) {
    return false;
  }
  *out = &handle->base.memory;
  **out = (OrtExternalMemoryHandle){.version = context->stamp,
                                    .ep_device = ep_device,
                                    .descriptor = *descriptor,
                                    .Release = ep_memory_release};
  (*out)->descriptor.version = context->stamp;
  return true;
}

void ORT_API_CALL ep_memory_release(OrtExternalMemoryHandle* base) {
  ep_handle_release((EpHandle*)base);
}

static void ORT_API_CALL ep_tensor_deleter_free(OrtAllocator* base, void* data) {
  (void)data;
  EpTensorDeleter* deleter = (EpTensorDeleter*)base;
  ep_resource_release(deleter->resource);
  free(deleter);
}

static const OrtMemoryInfo* ORT_API_CALL ep_tensor_deleter_info(const OrtAllocator* base) {
  return ((const EpTensorDeleter*)base)->resource->device->memory_info;
}

static void* ORT_API_CALL ep_tensor_deleter_alloc(OrtAllocator* base, size_t bytes) {
  (void)base;
  (void)bytes;
  return NULL;
}

/* Some releases (1.24 and 1.28 do, 1.32 does not) take the numbers of the types after FLOAT4E2M1 for
 * others, and make a UINT2 tensor when INT2 is asked for. */
static bool ep_tensor_has_type(const EpContext* context, const OrtValue* tensor,
                               ONNXTensorElementDataType type, EpError* error) {
  const OrtApi* api = context->api;
  OrtTensorTypeAndShapeInfo* info = NULL;
  ONNXTensorElementDataType made = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  if (!ep_check(api, api->GetTensorTypeAndShape(tensor, &info), error)) {
    return false;
  }
  bool known = ep_check(api, api->GetTensorElementType(info, &made), error);
  api->ReleaseTensorTypeAndShapeInfo(info);
  return known &&
         (made == type ||
          ep_fail(error, ORT_NOT_IMPLEMENTED,
                  "element_type is %d, but ONNX Runtime 1.%u makes tensors of type %d of it",
                  (int)type, (unsigned)context->api_version, (int)made));
}

/* Takes over the reference to `resource`. */
static bool ep_tensor_wrap(EpResource* resource, void* data, size_t bytes,
                           const OrtExternalTensorDescriptor* descriptor, OrtValue** out,
                           EpError* error) {
  const OrtApi* api = resource->device->context->api;
  EpTensorDeleter* deleter = calloc(1, sizeof *deleter);
  if (deleter == NULL) {
    ep_resource_release(resource);
    return ep_out_of_memory(error);
  }
  deleter->resource = resource;
  deleter->base.version = resource->device->context->stamp;
  deleter->base.Alloc = ep_tensor_deleter_alloc;
  deleter->base.Reserve = ep_tensor_deleter_alloc;
  deleter->base.Free = ep_tensor_deleter_free;
  deleter->base.Info = ep_tensor_deleter_info;
  static const int64_t scalar_shape[1] = {1};
  const int64_t* shape = descriptor->rank == 0 ? scalar_shape : descriptor->shape;
  if (!ep_check(
          api,
          api->CreateTensorWithDataAndDeleterAsOrtValue(
              &deleter->base, data, bytes, shape, descriptor->rank, descriptor->element_type, out),
          error)) {
    *out = NULL;
    ep_tensor_deleter_free(&deleter->base, data);
    return false;
  }
  if (!ep_tensor_has_type(resource->device->context, *out, descriptor->element_type, error)) {
    api->ReleaseValue(*out);
    *out = NULL;
    return false;
  }
  return true;
}

bool ep_memory_create_tensor(EpDevice* device, const OrtExternalMemoryHandle* handle,
                             const OrtExternalTensorDescriptor* descriptor, OrtValue** out,
                             EpError* error) {
  EpResource* resource = ep_resource_of(device, handle, true, "mem_handle", error);
  if (resource == NULL) {
    return false;
  }
  char* region = ep_driver_memory_address(resource->memory);
  size_t bytes = 0;
  if (!ep_validate_tensor(descriptor, region, resource->region_bytes, &bytes, error)) {
    ep_resource_release(resource);
    return false;
  }
  return ep_tensor_wrap(resource, region + descriptor->offset_bytes, bytes, descriptor, out, error);
}

bool ep_semaphore_import(EpDevice* device, const OrtEpDevice* ep_device,
                         const OrtExternalSemaphoreDescriptor* descriptor,
                         OrtExternalSemaphoreHandle** out, EpError* error) {
  const EpContext* context = device->context;
  const EpHandleType* type = NULL;
  EpNativeHandle native;
  if (!ep_validate_semaphore(descriptor, context->api_version, &type, &native, error)) {
    return false;
  }
  if (!ep_driver_can_import_semaphore(device->driver, type)) {
    return ep_fail(error, ORT_NOT_IMPLEMENTED, "type %s cannot be imported by %s", type->name,
                   device->info->name);
  }
  EpHandle* handle = ep_handle_create(device, type, &native, error);
  if (handle == NULL) {
    return false;
  }
  bool good =
      ep_driver_import_semaphore(device->driver, type, native, &handle->resource->semaphore, error);
  if (!ep_handle_finish(handle, type, native, good, false, error)) {
    return false;
  }
  *out = &handle->base.semaphore;
  **out = (OrtExternalSemaphoreHandle){.version = context->stamp,
                                       .ep_device = ep_device,
                                       .descriptor = *descriptor,
                                       .Release = ep_semaphore_release};
  (*out)->descriptor.version = context->stamp;
  return true;
}

void ORT_API_CALL ep_semaphore_release(OrtExternalSemaphoreHandle* base) {
  ep_handle_release((EpHandle*)base);
}

bool ep_semaphore_enqueue(EpDevice* device, const OrtExternalSemaphoreHandle* handle,
                          EpDriverStream* stream, uint64_t value,
                          bool (*enqueue)(EpDriverSemaphore*, EpDriverStream*, uint64_t, EpError*),
                          EpError* error) {
  EpResource* resource = ep_resource_of(device, handle, false, "handle", error);
  if (resource == NULL) {
    return false;
  }
  bool good = enqueue(resource->semaphore, stream, value, error);
  ep_resource_release(resource);
  return good;
}
