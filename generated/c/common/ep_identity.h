/*
 * The compute part: Identity, compiled. An EP author replaces this file and keeps the rest.
 */
#ifndef EP_IDENTITY_H_
#define EP_IDENTITY_H_

#include "ep_context.h"

/** Whether the EP can run `node`: an Identity of tensors with fixed-size elements that no other EP
 *  has taken. */
bool ep_identity_supports(const OrtApi* api, const OrtNode* node, bool* supported, EpError* error);

/** The compiled form of a node that ep_identity_supports() accepted; ep_identity_release() ends it.
 *  Null, with `error` written, when memory is short. */
OrtNodeComputeInfo* ep_identity_create(EpDevice* device, EpError* error);
/** Releases a compiled node; null is ignored. */
void ep_identity_release(OrtNodeComputeInfo* info);

#endif /* EP_IDENTITY_H_ */
