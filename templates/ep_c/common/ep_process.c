#include "ep_process.h"

#include "ep_platform.h"

static struct {
  EpMutex mutex;
  size_t references;
  EpDriver* driver;
} ep_process = {EP_MUTEX_INITIALIZER, 0, NULL};

EpDriver* ep_process_acquire(EpError* error) {
  ep_mutex_lock(&ep_process.mutex);
  if (ep_process.driver == NULL && !ep_driver_open(&ep_process.driver, error)) {
    ep_process.driver = NULL;
  }
  EpDriver* driver = ep_process.driver;
  ep_process.references += driver != NULL;
  ep_mutex_unlock(&ep_process.mutex);
  return driver;
}

void ep_process_retain(EpDriver* driver) {
  (void)driver;
  ep_mutex_lock(&ep_process.mutex);
  ++ep_process.references;
  ep_mutex_unlock(&ep_process.mutex);
}

void ep_process_release(EpDriver* driver) {
  if (driver == NULL) {
    return;
  }
  ep_mutex_lock(&ep_process.mutex);
  bool last = --ep_process.references == 0;
  if (last) {
    ep_process.driver = NULL;
  }
  ep_mutex_unlock(&ep_process.mutex);
  if (last) {
    ep_driver_close(driver);
  }
}
