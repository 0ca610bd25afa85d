/* Bytes of a tensor, and copies between tensors. */
#ifndef EP_TENSOR_H_
#define EP_TENSOR_H_

#include "ep_context.h"
#include "ep_validate.h"

/** A tensor's bytes. `device` is null for memory of the host. */
typedef struct EpTensorView {
  void* data;
  size_t bytes;
  const EpDevice* device;
} EpTensorView;

/** The bytes of `value`, a tensor of fixed-size elements on a device of the EP or on the host.
 *  `name` is how messages call it. */
bool ep_tensor_view(EpContext* context, const OrtValue* value, const char* name, EpTensorView* view,
                    EpError* error);

/** Copies `source` to `destination`, which is as large; enqueued on `stream` unless that is
 *  null. */
bool ep_tensor_copy(const EpTensorView* destination, const EpTensorView* source,
                    EpDriverStream* stream, EpError* error);

/** Gives output 0 of `kernel` the shape of input 0, and copies the input to it on the kernel's
 *  stream. `device` is the one that the kernel runs on, `what` how the log calls the kernel. */
bool ep_tensor_copy_through(EpDevice* device, OrtKernelContext* kernel, const char* what,
                            EpError* error);

#endif /* EP_TENSOR_H_ */
