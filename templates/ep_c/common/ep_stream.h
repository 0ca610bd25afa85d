/* Streams and their notifications, as ONNX Runtime drives them. */
#ifndef EP_STREAM_H_
#define EP_STREAM_H_

#include "ep_context.h"

/** A stream on `device`; ONNX Runtime ends it through its Release. Null, with `error` written, when
 *  the driver refuses. */
OrtSyncStreamImpl* ep_stream_create(EpDevice* device, EpError* error);

/** The driver's stream behind `stream`, into `*driver_stream`. Fails when it is another EP's, or
 *  on another device; the message then names both devices. */
bool ep_stream_of_device(const EpDevice* device, const OrtSyncStream* stream,
                         EpDriverStream** driver_stream, EpError* error);

#endif /* EP_STREAM_H_ */
