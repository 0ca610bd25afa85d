/* Events of the host driver. */
#include <stdlib.h>

#include "host_device.h"

struct EpDriverEvent {
  atomic_size_t references;
  EpMutex mutex;
  EpCondition changed;
  uint64_t recorded;
  uint64_t happened;
};

typedef struct HostEventTask {
  EpTask base;
  EpDriverEvent* event;
  uint64_t record;
} HostEventTask;

bool ep_driver_event_create(EpDriverDevice* device, EpDriverEvent** out, EpError* error) {
  (void)device;
  EpDriverEvent* event = calloc(1, sizeof *event);
  *out = event;
  if (event == NULL) {
    return ep_out_of_memory(error);
  }
  atomic_init(&event->references, 1);
  ep_mutex_init(&event->mutex);
  ep_condition_init(&event->changed);
  return true;
}

void ep_driver_event_release(EpDriverEvent* event) {
  if (atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) == 1) {
    ep_condition_destroy(&event->changed);
    ep_mutex_destroy(&event->mutex);
    free(event);
  }
}

static void host_event_await(EpDriverEvent* event, uint64_t record) {
  ep_mutex_lock(&event->mutex);
  while (event->happened < record) {
    ep_condition_wait(&event->changed, &event->mutex);
  }
  ep_mutex_unlock(&event->mutex);
}

static void host_event_happen(EpQueue* queue, EpTask* base) {
  (void)queue;
  HostEventTask* task = (HostEventTask*)base;
  ep_mutex_lock(&task->event->mutex);
  if (task->event->happened < task->record) {
    task->event->happened = task->record;
  }
  ep_condition_broadcast(&task->event->changed);
  ep_mutex_unlock(&task->event->mutex);
  ep_driver_event_release(task->event);
  free(task);
}

static void host_event_pass(EpQueue* queue, EpTask* base) {
  (void)queue;
  HostEventTask* task = (HostEventTask*)base;
  host_event_await(task->event, task->record);
  ep_driver_event_release(task->event);
  free(task);
}

static bool host_event_push(EpDriverEvent* event, EpDriverStream* stream,
                            void (*run)(EpQueue*, EpTask*), uint64_t recorded, EpError* error) {
  HostEventTask* task = malloc(sizeof *task);
  if (task == NULL) {
    return ep_out_of_memory(error);
  }
  ep_mutex_lock(&event->mutex);
  event->recorded += recorded;
  task->record = event->recorded;
  ep_mutex_unlock(&event->mutex);
  atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
  task->base.run = run;
  task->event = event;
  return ep_queue_add(&stream->queue, &task->base);
}

bool ep_driver_event_record(EpDriverEvent* event, EpDriverStream* stream, EpError* error) {
  return host_event_push(event, stream, host_event_happen, 1, error);
}

bool ep_driver_event_wait(EpDriverEvent* event, EpDriverStream* stream, EpError* error) {
  return host_event_push(event, stream, host_event_pass, 0, error);
}

bool ep_driver_event_wait_on_host(EpDriverEvent* event, EpError* error) {
  (void)error;
  ep_mutex_lock(&event->mutex);
  uint64_t record = event->recorded;
  ep_mutex_unlock(&event->mutex);
  host_event_await(event, record);
  return true;
}
