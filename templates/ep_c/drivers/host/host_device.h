/* What the files of the host driver share. */
#ifndef HOST_DEVICE_H_
#define HOST_DEVICE_H_

#include "ep_config.h"
#include "ep_driver.h"
#include "ep_queue.h"

struct EpDriverDevice {
  EpDeviceInfo info;
  EpMutex mutex; /**< Of `queues`. */
  EpQueues queues;
};

/** A queue whose thread does all the work. */
struct EpDriverStream {
  EpQueue queue;
  EpError error; /**< The first since the last flush. Guarded by the queue's mutex. */
};

#endif /* HOST_DEVICE_H_ */
