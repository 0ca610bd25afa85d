/*
 * Checks of what an application hands to the importer. ONNX Runtime passes all of it through
 * unchecked. Every message names the field and its value.
 */
#ifndef EP_VALIDATE_H_
#define EP_VALIDATE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ep_driver.h"
#include "ep_error.h"

/** Release in which descriptors came: one with an older version cannot exist. */
#define EP_DESCRIPTOR_FLOOR 24
/** More dimensions than any operator has; a larger rank is a broken descriptor. */
#define EP_MAX_RANK 64

/** Whether `type` exists on this platform, and on a host of release `api_version`. */
bool ep_handle_type_exists(const EpHandleType* type, uint32_t api_version);

/** The row of `table` for `ort_type`, null if there is none or it does not exist here. */
const EpHandleType* ep_find_handle_type(const EpHandleType* table, uint32_t ort_type,
                                        uint32_t api_version);

/** Turns the descriptor of memory into a request whose native handle is still the application's.
 *  `api_version` is the host's release. */
bool ep_validate_memory(const OrtExternalMemoryDescriptor* descriptor, uint32_t api_version,
                        EpMemoryRequest* request, EpError* error);

/** The same for the descriptor of a semaphore. */
bool ep_validate_semaphore(const OrtExternalSemaphoreDescriptor* descriptor, uint32_t api_version,
                           const EpHandleType** type, EpNativeHandle* native, EpError* error);

/** Checks that the tensor fits a region of `region_bytes` bytes at `region`, and is aligned there.
 *  `*byte_size` becomes the size of the tensor in bytes. */
bool ep_validate_tensor(const OrtExternalTensorDescriptor* descriptor, const void* region,
                        size_t region_bytes, size_t* byte_size, EpError* error);

#endif /* EP_VALIDATE_H_ */
