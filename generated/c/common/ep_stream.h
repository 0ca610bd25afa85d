/* Streams and their notifications, as ONNX Runtime drives them. */
#ifndef EP_STREAM_H_
#define EP_STREAM_H_

#include "ep_context.h"

/** The streams of a session: those that its provider made and that are not yet released. */
typedef struct EpStreamGroup EpStreamGroup;

/** An empty group; ep_stream_group_release() ends the caller's use of it. Null, with `error`
 *  written, when memory is short. */
EpStreamGroup* ep_stream_group_create(EpError* error);
/** Ends the use of `group`; streams in it live on. Null is ignored. */
void ep_stream_group_release(EpStreamGroup* group);
/** Blocks until everything enqueued so far on the streams of `group` is done. */
bool ep_stream_group_flush(EpStreamGroup* group, EpError* error);

/** A stream on `device`, in `group` unless that is null; ONNX Runtime ends it through its Release.
 *  Null, with `error` written, when the driver refuses. */
OrtSyncStreamImpl* ep_stream_create(EpDevice* device, EpStreamGroup* group, EpError* error);

/** The driver's stream behind `stream`, into `*driver_stream`. Fails when it is another EP's, or
 *  on another device; the message then names both devices. */
bool ep_stream_of_device(const EpDevice* device, const OrtSyncStream* stream,
                         EpDriverStream** driver_stream, EpError* error);

#endif /* EP_STREAM_H_ */
