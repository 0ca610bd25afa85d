/* The execution provider of a session: it runs Identity. */
#ifndef EP_PROVIDER_H_
#define EP_PROVIDER_H_

#include "ep_context.h"

/** A provider on `device`; ep_provider_release() ends it. Null, with `error` written, on failure. */
OrtEp* ep_provider_create(EpDevice* device, EpError* error);
/** Releases a provider; null is ignored. */
void ep_provider_release(OrtEp* ep);

#endif /* EP_PROVIDER_H_ */
