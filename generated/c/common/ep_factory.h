/* The factory: what ONNX Runtime asks about the EP before and beside sessions. */
#ifndef EP_FACTORY_H_
#define EP_FACTORY_H_

#include "ep_context.h"

/** A factory on `context`, of which it keeps a reference; ep_factory_release() ends it. Null, with
 *  `error` written, when memory is short. */
OrtEpFactory* ep_factory_create(EpContext* context, EpError* error);
/** Releases a factory; null is ignored. Objects that it made may live on. */
void ep_factory_release(OrtEpFactory* factory);

#endif /* EP_FACTORY_H_ */
