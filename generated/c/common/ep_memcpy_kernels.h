/*
 * MemcpyFromHost and MemcpyToHost: ONNX Runtime puts them between the EP's nodes and the CPU's, and
 * crashes where an EP has none.
 */
#ifndef EP_MEMCPY_KERNELS_H_
#define EP_MEMCPY_KERNELS_H_

#include "ep_context.h"

/** A registry with the two kernels, for `device`. The caller releases it with
 *  OrtEpApi::ReleaseKernelRegistry. */
bool ep_memcpy_kernels_create(EpDevice* device, OrtKernelRegistry** registry, EpError* error);

#endif /* EP_MEMCPY_KERNELS_H_ */
