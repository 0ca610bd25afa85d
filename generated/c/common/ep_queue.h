/*
 * Queues of work: tasks in order, on a thread that is there while they are; and the release of
 * objects that queues still use. A driver's stream begins with one.
 *
 * The driver says, by an EpQueueKind, when a queue's work is done: with its last task, or with what
 * the tasks have given to a device.
 */
#ifndef EP_QUEUE_H_
#define EP_QUEUE_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ep_driver.h"
#include "ep_platform.h"

typedef struct EpQueue EpQueue;

/** Work in a queue. The owner sets `run` and its own fields; the queue does the rest. */
typedef struct EpTask {
  struct EpTask* next;
  /** Does the work on the queue's thread, and releases the task. */
  void (*run)(EpQueue* queue, struct EpTask* task);
} EpTask;

/** What queues are to their driver. Points of a queue are numbers that grow. */
typedef struct EpQueueKind {
  /** The point where everything that `queue` holds is done. Called with the set's mutex held. */
  uint64_t (*end)(EpQueue* queue);
  /** Whether `queue` has passed `point`. Called with the set's mutex held. */
  bool (*passed)(EpQueue* queue, uint64_t point);
  /** Blocks until it has; called without a mutex. */
  void (*await)(EpQueue* queue, uint64_t point);
  /** Releases `queue`, which is done and known to nobody. */
  void (*destroy)(EpQueue* queue);
  /** The thread stays for as long as the queue; else it goes when there is no task. */
  bool stays;
} EpQueueKind;

/** The queues of a device, and what they have in common. */
typedef struct EpQueues {
  const EpQueueKind* kind;
  EpDriver* driver; /**< Kept by each thread. */
  EpMutex* mutex;   /**< Guards the set; the driver may guard more with it. */
  EpQueue* first;   /**< Those that only drain included. */
  uint64_t tickets;
} EpQueues;

struct EpQueue {
  EpQueues* queues;
  EpQueue* next;
  size_t users;    /**< With the last one it drains and ends. Guarded by the set's mutex. */
  uint64_t ticket; /**< Of the last object that waits for it. Guarded likewise. */
  EpMutex mutex;   /**< Guards what follows; taken after the set's. */
  EpCondition changed;
  EpTask* tasks;
  EpTask** last;
  uint64_t added;
  uint64_t done;
  bool working; /**< There is a thread. */
  bool closing;
};

/** Something that queues use until they are done: counted by those that do. */
typedef struct EpRetirement {
  atomic_size_t references;
  void (*done)(struct EpRetirement* retirement);
} EpRetirement;

/** Makes `queues` empty. `mutex` lives as long. */
void ep_queues_init(EpQueues* queues, const EpQueueKind* kind, EpDriver* driver, EpMutex* mutex);
/** The queue whose address is `address`, null if it is none of `queues`. */
EpQueue* ep_queues_find(EpQueues* queues, const void* address);
/** Calls `done(retirement)` when all queues have done what they hold now; at once if they have, else
 *  on one of their threads. The caller has allocated `retirement`, within the object that is to go.
 *  Blocks only when the system is short of memory or threads. */
void ep_queues_retire(EpQueues* queues, EpRetirement* retirement,
                      void (*done)(EpRetirement* retirement));

/** Makes `queue` an empty one of `queues`, with one user. Called with the set's mutex held. */
void ep_queue_open(EpQueue* queue, EpQueues* queues);
/** Takes out a queue that is done, has no thread and no other user. Called with the set's mutex held,
 *  or when nobody else knows the set. */
void ep_queue_remove(EpQueue* queue);
/** Adds a user. Called with the set's mutex held. */
void ep_queue_retain(EpQueue* queue);
/** Drops a user. After the last one the queue drains and is destroyed, on its thread if it has
 *  work. */
void ep_queue_drop(EpQueue* queue);
/** Starts the thread if there is none. @return false when the system refuses one */
bool ep_queue_start(EpQueue* queue);
/** ep_queue_start(), then hands over `task`, which stays the caller's on failure. Does not fail where
 *  the thread stays and has been started. */
bool ep_queue_add(EpQueue* queue, EpTask* task);
/** Blocks until the thread is gone. Called without a mutex, and not for one that stays. */
void ep_queue_rest(EpQueue* queue);
/** Calls `work(argument)` here and now if no task is left; none is added meanwhile. @return false if
 *  one is; `work` is then not called. */
bool ep_queue_do_if_idle(EpQueue* queue, void (*work)(void* argument), void* argument);

/** EpQueueKind::end for queues that are done with their last task. */
uint64_t ep_queue_last_task(EpQueue* queue);
/** EpQueueKind::passed for them. */
bool ep_queue_did_task(EpQueue* queue, uint64_t task);
/** EpQueueKind::await for them. */
void ep_queue_await_task(EpQueue* queue, uint64_t task);

#endif /* EP_QUEUE_H_ */
