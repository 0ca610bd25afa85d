/*
 * The process's one driver, counted. A stream of one registration of the EP may meet the importer of
 * another, so they have their devices in common.
 */
#ifndef EP_PROCESS_H_
#define EP_PROCESS_H_

#include "ep_driver.h"

/** A reference to the driver, which is opened if there is none. Null with `error` written. */
EpDriver* ep_process_acquire(EpError* error);
/** Adds a reference. */
void ep_process_retain(EpDriver* driver);
/** Drops a reference, and with the last one the driver. Null is ignored. */
void ep_process_release(EpDriver* driver);

#endif /* EP_PROCESS_H_ */
