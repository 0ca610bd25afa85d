/* What the files of the host driver share. */
#ifndef HOST_DEVICE_H_
#define HOST_DEVICE_H_

#include "ep_config.h"
#include "ep_driver.h"
#include "host_queue.h"

struct EpDriverDevice {
  EpDeviceInfo info;
  HostQueues queues;
};

/** Writes that memory is short. @return false */
static inline bool host_out_of_memory(EpError* error) {
  return ep_fail(error, ORT_FAIL, EP_NAME ": out of memory");
}

#endif /* HOST_DEVICE_H_ */
