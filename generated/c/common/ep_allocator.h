/* Device memory for ONNX Runtime. */
#ifndef EP_ALLOCATOR_H_
#define EP_ALLOCATOR_H_

#include "ep_context.h"

/** An allocator of the device's default memory; ep_allocator_release() ends it. Its Free follows
 *  the streams: memory is reused only after work that streams held at that moment. Null, with
 *  `error` written, when memory is short. */
OrtAllocator* ep_allocator_create(EpDevice* device, EpError* error);
/** Releases the allocator; null is ignored. */
void ep_allocator_release(OrtAllocator* allocator);

#endif /* EP_ALLOCATOR_H_ */
