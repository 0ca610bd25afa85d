/*
 * Tells ONNX Runtime's log, at its verbose level, where bytes move, so that an application can see
 * that nothing was copied which it thinks is not.
 */
#ifndef EP_TRACE_H_
#define EP_TRACE_H_

#include "ep_tensor.h"

/** Logs a copy that `what` is about to make: a kernel's name, or "transfer" for the data transfer.
 *  Costs a look at the log's level when that is not verbose. */
void ep_trace_copy(const EpContext* context, const char* what, const EpTensorView* destination,
                   const EpTensorView* source);

#endif /* EP_TRACE_H_ */
