#include "ep_validate.h"

#include <inttypes.h>
#include <limits.h>

#include "ep_config.h"
#include "ep_platform.h"
#include "ep_types.h"

bool ep_handle_type_exists(const EpHandleType* type, uint32_t api_version) {
  return type->since <= api_version && (type->platforms & EP_THIS_PLATFORM) != 0;
}

const EpHandleType* ep_find_handle_type(const EpHandleType* table, uint32_t ort_type,
                                        uint32_t api_version) {
  for (const EpHandleType* type = table; type->name != NULL; ++type) {
    if (type->ort_type == ort_type && ep_handle_type_exists(type, api_version)) {
      return type;
    }
  }
  return NULL;
}

static bool ep_validate_version(const char* what, uint32_t version, EpError* error) {
  return version >= EP_DESCRIPTOR_FLOOR ||
         ep_fail_argument(error,
                          "%s: version is %" PRIu32
                          "; the structure exists since version %d, set "
                          "it to ORT_API_VERSION",
                          what, version, EP_DESCRIPTOR_FLOOR);
}

static bool ep_validate_native(const char* what, EpNativeKind kind, void* value,
                               EpNativeHandle* native, EpError* error) {
  switch (kind) {
    case EP_NATIVE_FD: {
      intptr_t fd = (intptr_t)value;
      if (fd < 0 || fd > INT_MAX) {
        return ep_fail_argument(error, "%s: native_handle is %" PRIdPTR ", not a file descriptor",
                                what, fd);
      }
      native->fd = (int)fd;
      return true;
    }
    case EP_NATIVE_POINTER:
      if (value == NULL || (uintptr_t)value % ep_page_size() != 0) {
        return ep_fail_argument(error,
                                "%s: native_handle is 0x%" PRIxPTR
                                ", not the address of a host allocation aligned to %zu bytes",
                                what, (uintptr_t)value, ep_page_size());
      }
      native->address = value;
      return true;
    case EP_NATIVE_WIN32:
      if (value == NULL) {
        return ep_fail_argument(error, "%s: native_handle is null", what);
      }
      native->handle = value;
      return true;
  }
  return ep_fail_argument(error, "%s: native_handle is of a kind that the EP does not know", what);
}

bool ep_validate_memory(const OrtExternalMemoryDescriptor* descriptor, uint32_t api_version,
                        EpMemoryRequest* request, EpError* error) {
  static const char what[] = "OrtExternalMemoryDescriptor";
  if (!ep_validate_version(what, descriptor->version, error)) {
    return false;
  }
  uint32_t ort_type = (uint32_t)descriptor->handle_type;
  request->type = ep_find_handle_type(ep_memory_types, ort_type, api_version);
  if (request->type == NULL) {
    return ep_fail_argument(error,
                            "%s: handle_type is %" PRIu32 ", which " EP_NAME
                            " cannot import on ONNX Runtime 1.%" PRIu32,
                            what, ort_type, api_version);
  }
  if (descriptor->size_bytes == 0) {
    return ep_fail_argument(error, "%s: size_bytes is 0", what);
  }
  if (descriptor->offset_bytes > descriptor->size_bytes) {
    return ep_fail_argument(error, "%s: offset_bytes is %zu, past the end at size_bytes %zu", what,
                            descriptor->offset_bytes, descriptor->size_bytes);
  }
  if (!ep_validate_native(what, request->type->kind, descriptor->native_handle, &request->native,
                          error)) {
    return false;
  }
  if (request->type->kind == EP_NATIVE_POINTER &&
      descriptor->size_bytes > UINTPTR_MAX - (uintptr_t)descriptor->native_handle) {
    return ep_fail_argument(error,
                            "%s: size_bytes is %zu, more than the address space holds after "
                            "native_handle 0x%" PRIxPTR,
                            what, descriptor->size_bytes, (uintptr_t)descriptor->native_handle);
  }
  request->size_bytes = descriptor->size_bytes;
  request->offset_bytes = descriptor->offset_bytes;
  return true;
}

bool ep_validate_semaphore(const OrtExternalSemaphoreDescriptor* descriptor, uint32_t api_version,
                           const EpHandleType** type, EpNativeHandle* native, EpError* error) {
  static const char what[] = "OrtExternalSemaphoreDescriptor";
  if (!ep_validate_version(what, descriptor->version, error)) {
    return false;
  }
  uint32_t ort_type = (uint32_t)descriptor->type;
  *type = ep_find_handle_type(ep_semaphore_types, ort_type, api_version);
  if (*type == NULL) {
    return ep_fail_argument(error,
                            "%s: type is %" PRIu32 ", which " EP_NAME
                            " cannot import on ONNX Runtime 1.%" PRIu32,
                            what, ort_type, api_version);
  }
  return ep_validate_native(what, (*type)->kind, descriptor->native_handle, native, error);
}

/* Bytes of `count` elements of `bits` bits, the last byte rounded up; false when it overflows. */
static bool ep_packed_bytes(size_t count, unsigned bits, size_t* bytes) {
  if (bits >= 8) {
    size_t element = bits / 8;
    *bytes = count * element;
    return count <= SIZE_MAX / element;
  }
  size_t per_byte = 8 / bits;
  *bytes = count / per_byte + (count % per_byte != 0);
  return true;
}

static bool ep_validate_shape(const char* what, const OrtExternalTensorDescriptor* descriptor,
                              size_t* count, EpError* error) {
  if (descriptor->rank > EP_MAX_RANK) {
    return ep_fail_argument(error, "%s: rank is %zu, more than %d", what, descriptor->rank,
                            EP_MAX_RANK);
  }
  if (descriptor->rank > 0 && descriptor->shape == NULL) {
    return ep_fail_argument(error, "%s: shape is null although rank is %zu", what,
                            descriptor->rank);
  }
  /* An empty tensor must not hide that its other dimensions overflow: whoever multiplies them in
   * another order would see it. */
  uint64_t product = 1;
  bool empty = false;
  for (size_t i = 0; i < descriptor->rank; ++i) {
    int64_t dimension = descriptor->shape[i];
    if (dimension < 0) {
      return ep_fail_argument(error, "%s: shape[%zu] is %" PRId64 ", negative", what, i, dimension);
    }
    if (dimension == 0) {
      empty = true;
    } else if (product > (uint64_t)INT64_MAX / (uint64_t)dimension) {
      return ep_fail_argument(error,
                              "%s: shape[%zu] is %" PRId64
                              ", with which the number of elements "
                              "overflows",
                              what, i, dimension);
    } else {
      product *= (uint64_t)dimension;
    }
  }
  if (product > SIZE_MAX) {
    return ep_fail_argument(error, "%s: shape has %" PRIu64 " elements, too many to address", what,
                            product);
  }
  *count = empty ? 0 : (size_t)product;
  return true;
}

bool ep_validate_tensor(const OrtExternalTensorDescriptor* descriptor, const void* region,
                        size_t region_bytes, size_t* byte_size, EpError* error) {
  static const char what[] = "OrtExternalTensorDescriptor";
  *byte_size = 0;
  if (!ep_validate_version(what, descriptor->version, error)) {
    return false;
  }
  unsigned bits = ep_element_bits(descriptor->element_type);
  if (bits == 0) {
    return ep_fail_argument(error,
                            "%s: element_type is %" PRIu32 ", which has no fixed size in memory",
                            what, (uint32_t)descriptor->element_type);
  }
  size_t count = 0;
  if (!ep_validate_shape(what, descriptor, &count, error)) {
    return false;
  }
  size_t bytes = 0;
  if (!ep_packed_bytes(count, bits, &bytes)) {
    return ep_fail_argument(error, "%s: shape has %zu elements, whose size in bytes overflows",
                            what, count);
  }
  if (descriptor->offset_bytes > region_bytes) {
    return ep_fail_argument(error,
                            "%s: offset_bytes is %zu, past the end of the imported region of %zu "
                            "bytes",
                            what, descriptor->offset_bytes, region_bytes);
  }
  if (bytes > region_bytes - descriptor->offset_bytes) {
    return ep_fail_argument(error,
                            "%s: shape needs %zu bytes from offset_bytes %zu, but the imported "
                            "region has %zu bytes",
                            what, bytes, descriptor->offset_bytes, region_bytes);
  }
  size_t alignment = ep_element_alignment(descriptor->element_type);
  if (((uintptr_t)region + descriptor->offset_bytes) % alignment != 0) {
    return ep_fail_argument(error,
                            "%s: offset_bytes is %zu; with the region's start at a multiple of "
                            "%zu bytes element_type %" PRIu32 " needs a multiple of %zu",
                            what, descriptor->offset_bytes,
                            (size_t)((uintptr_t)region & (0 - (uintptr_t)region)),
                            (uint32_t)descriptor->element_type, alignment);
  }
  *byte_size = bytes;
  return true;
}
