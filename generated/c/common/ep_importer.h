/* The importer: external memory and semaphores of a device. */
#ifndef EP_IMPORTER_H_
#define EP_IMPORTER_H_

#include "ep_context.h"

/** An importer for `device`, which `ep_device` stands for; ONNX Runtime ends it through its
 *  Release. Handles that it makes may outlive it. Null, with `error` written, when memory is
 *  short. Since 1.24. */
OrtExternalResourceImporterImpl* ep_importer_create(EpDevice* device, const OrtEpDevice* ep_device,
                                                    EpError* error);

#endif /* EP_IMPORTER_H_ */
