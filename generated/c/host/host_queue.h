/*
 * Streams of the host: a worker thread each, and tasks in order.
 */
#ifndef HOST_QUEUE_H_
#define HOST_QUEUE_H_

#include <stdatomic.h>

#include "ep_driver.h"
#include "ep_platform.h"

/** Work on a stream. The owner sets `run` and its own fields; the queue does the rest. */
typedef struct HostTask {
  struct HostTask* next;
  /** Does the work on the worker thread, and releases the task. */
  bool (*run)(struct HostTask* task, EpError* error);
} HostTask;

/** What happens once the streams are done with something: one reference for each of them that holds
 *  a task for it, and one while they are asked. */
typedef struct HostRetirement {
  atomic_size_t references;
  void (*done)(struct HostRetirement* retirement);
} HostRetirement;

/** The streams of a device. */
typedef struct HostQueues {
  EpMutex mutex;
  EpDriverStream* streams; /**< Live ones, those that only drain included. */
} HostQueues;

/** Makes `queues` empty. */
void host_queues_init(HostQueues* queues);
/** Ends an empty set. */
void host_queues_destroy(HostQueues* queues);

/** A stream with its worker. `ended(argument)` is called when its last task is done, after the
 *  release; until then `queues` must exist. Null when the system is out of threads or memory. */
EpDriverStream* host_stream_create(HostQueues* queues, void (*ended)(void* argument),
                                   void* argument);
/** Whether `native` is a stream of `queues`. */
bool host_stream_is_of(HostQueues* queues, const void* native);
/** Lets the worker finish what is enqueued and end. */
void host_stream_release(EpDriverStream* stream);
/** Enqueues `task`, which the queue takes over. */
void host_stream_push(EpDriverStream* stream, HostTask* task);
/** Calls `work(argument)` here and now if `stream` has nothing to do; others cannot enqueue on it
 *  meanwhile. @return false if it is busy; `work` is then not called. */
bool host_stream_do_if_idle(EpDriverStream* stream, void (*work)(void* argument), void* argument);
/** Blocks until what is enqueued now is done; hands over the first error since the last flush. */
bool host_stream_flush(EpDriverStream* stream, EpError* error);

/** Calls `done(retirement)` when all streams have done what they hold now; at once if they are
 *  idle. The caller has allocated `retirement`, usually within the object that is to go. Blocks only
 *  when memory is short. */
void host_queues_retire(HostQueues* queues, HostRetirement* retirement,
                        void (*done)(HostRetirement* retirement));

#endif /* HOST_QUEUE_H_ */
