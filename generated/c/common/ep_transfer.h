/* Copies between the EP's devices and the host, for ONNX Runtime and for applications. */
#ifndef EP_TRANSFER_H_
#define EP_TRANSFER_H_

#include "ep_context.h"

/** A data transfer for all devices of `context`; ONNX Runtime ends it through its Release. Null,
 *  with `error` written, when memory is short. */
OrtDataTransferImpl* ep_transfer_create(EpContext* context, EpError* error);

#endif /* EP_TRANSFER_H_ */
