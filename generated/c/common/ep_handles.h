/*
 * Handles of imported memory and semaphores. What a handle stands for is counted: tensors keep the
 * memory, enqueued waits keep the semaphore, when the handle is already released.
 */
#ifndef EP_HANDLES_H_
#define EP_HANDLES_H_

#include "ep_context.h"

/** Imports what `descriptor` names. The native handle stays the application's: a descriptor of a
 *  file is duplicated. `*out` is released through its own Release. */
bool ep_memory_import(EpDevice* device, const OrtEpDevice* ep_device,
                      const OrtExternalMemoryDescriptor* descriptor, OrtExternalMemoryHandle** out,
                      EpError* error);
/** The Release of a handle; null is ignored. */
void ORT_API_CALL ep_memory_release(OrtExternalMemoryHandle* handle);

/** A tensor on the memory of `handle`, without a copy, on the EP device's own memory info. It keeps
 *  the memory; the caller releases it with OrtApi::ReleaseValue. */
bool ep_memory_create_tensor(EpDevice* device, const OrtExternalMemoryHandle* handle,
                             const OrtExternalTensorDescriptor* descriptor, OrtValue** out,
                             EpError* error);

/** Imports what `descriptor` names; ownership as with ep_memory_import(). */
bool ep_semaphore_import(EpDevice* device, const OrtEpDevice* ep_device,
                         const OrtExternalSemaphoreDescriptor* descriptor,
                         OrtExternalSemaphoreHandle** out, EpError* error);
/** The Release of a handle; null is ignored. */
void ORT_API_CALL ep_semaphore_release(OrtExternalSemaphoreHandle* handle);

/** Calls `enqueue` with the driver's semaphore behind `handle`. */
bool ep_semaphore_enqueue(EpDevice* device, const OrtExternalSemaphoreHandle* handle,
                          EpDriverStream* stream, uint64_t value,
                          bool (*enqueue)(EpDriverSemaphore*, EpDriverStream*, uint64_t, EpError*),
                          EpError* error);

#endif /* EP_HANDLES_H_ */
