#include "ep_queue.h"

#include <stdlib.h>

#include "ep_process.h"

void ep_queues_init(EpQueues* queues, const EpQueueKind* kind, EpDriver* driver, EpMutex* mutex) {
  *queues = (EpQueues){.kind = kind, .driver = driver, .mutex = mutex};
}

EpQueue* ep_queues_find(EpQueues* queues, const void* address) {
  ep_mutex_lock(queues->mutex);
  EpQueue* queue = queues->first;
  while (queue != NULL && queue != address) {
    queue = queue->next;
  }
  ep_mutex_unlock(queues->mutex);
  return queue;
}

void ep_queue_open(EpQueue* queue, EpQueues* queues) {
  *queue = (EpQueue){.queues = queues, .next = queues->first, .users = 1};
  ep_mutex_init(&queue->mutex);
  ep_condition_init(&queue->changed);
  queue->last = &queue->tasks;
  queues->first = queue;
}

void ep_queue_remove(EpQueue* queue) {
  EpQueue** link = &queue->queues->first;
  while (*link != queue) {
    link = &(*link)->next;
  }
  *link = queue->next;
  ep_condition_destroy(&queue->changed);
  ep_mutex_destroy(&queue->mutex);
}

/* The next task; null when there is none, and the thread need not stay for one. */
static EpTask* ep_queue_take(EpQueue* queue) {
  ep_mutex_lock(&queue->mutex);
  while (queue->tasks == NULL && queue->queues->kind->stays && !queue->closing) {
    ep_condition_wait(&queue->changed, &queue->mutex);
  }
  EpTask* task = queue->tasks;
  if (task != NULL) {
    queue->tasks = task->next;
    if (queue->tasks == NULL) {
      queue->last = &queue->tasks;
    }
  }
  ep_mutex_unlock(&queue->mutex);
  return task;
}

static void ep_queue_run_tasks(EpQueue* queue) {
  for (EpTask* task = ep_queue_take(queue); task != NULL; task = ep_queue_take(queue)) {
    task->run(queue, task);
    ep_mutex_lock(&queue->mutex);
    ++queue->done;
    ep_condition_broadcast(&queue->changed);
    ep_mutex_unlock(&queue->mutex);
  }
}

/* Ends the thread's use of an empty queue, and a queue without users altogether. False if there is
 * more to do. */
static bool ep_queue_leave(EpQueue* queue) {
  EpQueues* queues = queue->queues;
  ep_mutex_lock(queues->mutex);
  bool open = queue->users > 0;
  uint64_t end = open ? 0 : queues->kind->end(queue);
  bool passed = open || queues->kind->passed(queue, end);
  ep_mutex_lock(&queue->mutex);
  bool empty = queue->tasks == NULL && !(open && queues->kind->stays);
  bool over = empty && passed;
  queue->working = !over;
  ep_condition_broadcast(&queue->changed);
  ep_mutex_unlock(&queue->mutex);
  if (over && !open) {
    ep_queue_remove(queue);
  }
  ep_mutex_unlock(queues->mutex);
  if (over && !open) {
    queues->kind->destroy(queue);
  } else if (empty && !over) {
    queues->kind->await(queue, end);
  }
  return over;
}

static void ep_queue_drain(EpQueue* queue) {
  do {
    ep_queue_run_tasks(queue);
  } while (!ep_queue_leave(queue));
}

static void ep_queue_work(void* argument) {
  EpQueue* queue = argument;
  EpDriver* driver = queue->queues->driver;
  ep_queue_drain(queue);
  ep_process_release(driver);
}

/* Called with the queue's mutex held. */
static bool ep_queue_start_held(EpQueue* queue) {
  if (!queue->working) {
    EpDriver* driver = queue->queues->driver;
    ep_process_retain(driver);
    queue->working = ep_thread_start(ep_queue_work, queue);
    if (!queue->working) {
      ep_process_release(driver);
    }
  }
  return queue->working;
}

bool ep_queue_start(EpQueue* queue) {
  ep_mutex_lock(&queue->mutex);
  bool good = ep_queue_start_held(queue);
  ep_mutex_unlock(&queue->mutex);
  return good;
}

bool ep_queue_add(EpQueue* queue, EpTask* task) {
  ep_mutex_lock(&queue->mutex);
  bool good = ep_queue_start_held(queue);
  if (good) {
    task->next = NULL;
    *queue->last = task;
    queue->last = &task->next;
    ++queue->added;
    ep_condition_broadcast(&queue->changed);
  }
  ep_mutex_unlock(&queue->mutex);
  return good;
}

void ep_queue_retain(EpQueue* queue) {
  ++queue->users;
}

void ep_queue_drop(EpQueue* queue) {
  EpQueues* queues = queue->queues;
  bool here = false;
  ep_mutex_lock(queues->mutex);
  if (--queue->users == 0) {
    bool passed = queues->kind->passed(queue, queues->kind->end(queue));
    ep_mutex_lock(&queue->mutex);
    queue->closing = true;
    ep_condition_broadcast(&queue->changed);
    if (!queue->working) {
      /* Without a thread the caller waits, and works in its place. */
      here = passed || !ep_queue_start_held(queue);
      queue->working = true;
    }
    ep_mutex_unlock(&queue->mutex);
  }
  ep_mutex_unlock(queues->mutex);
  if (here) {
    ep_queue_drain(queue);
  }
}

void ep_queue_rest(EpQueue* queue) {
  ep_mutex_lock(&queue->mutex);
  while (queue->working) {
    ep_condition_wait(&queue->changed, &queue->mutex);
  }
  ep_mutex_unlock(&queue->mutex);
}

bool ep_queue_do_if_idle(EpQueue* queue, void (*work)(void* argument), void* argument) {
  ep_mutex_lock(&queue->mutex);
  bool idle = queue->done == queue->added;
  if (idle) {
    work(argument);
  }
  ep_mutex_unlock(&queue->mutex);
  return idle;
}

uint64_t ep_queue_last_task(EpQueue* queue) {
  ep_mutex_lock(&queue->mutex);
  uint64_t added = queue->added;
  ep_mutex_unlock(&queue->mutex);
  return added;
}

bool ep_queue_did_task(EpQueue* queue, uint64_t task) {
  ep_mutex_lock(&queue->mutex);
  bool done = queue->done >= task;
  ep_mutex_unlock(&queue->mutex);
  return done;
}

void ep_queue_await_task(EpQueue* queue, uint64_t task) {
  ep_mutex_lock(&queue->mutex);
  while (queue->done < task) {
    ep_condition_wait(&queue->changed, &queue->mutex);
  }
  ep_mutex_unlock(&queue->mutex);
}

/* Keeps an object until `point` of the queue it is added to. */
typedef struct EpRetireTask {
  EpTask base;
  EpRetirement* retirement;
  uint64_t point;
} EpRetireTask;

static void ep_retirement_drop(EpRetirement* retirement) {
  if (atomic_fetch_sub_explicit(&retirement->references, 1, memory_order_acq_rel) == 1) {
    retirement->done(retirement);
  }
}

static void ep_retire_run(EpQueue* queue, EpTask* base) {
  EpRetireTask* task = (EpRetireTask*)base;
  queue->queues->kind->await(queue, task->point);
  ep_retirement_drop(task->retirement);
  free(task);
}

static bool ep_retire_after(EpQueue* queue, uint64_t point, EpRetirement* retirement) {
  EpRetireTask* task = malloc(sizeof *task);
  if (task == NULL) {
    return false;
  }
  *task = (EpRetireTask){.base = {.run = ep_retire_run}, .retirement = retirement, .point = point};
  atomic_fetch_add_explicit(&retirement->references, 1, memory_order_relaxed);
  if (ep_queue_add(queue, &task->base)) {
    return true;
  }
  atomic_fetch_sub_explicit(&retirement->references, 1, memory_order_relaxed);
  free(task);
  return false;
}

/* A queue with work that has not got `ticket` yet, and the end of its work. */
static EpQueue* ep_queues_busy(const EpQueues* queues, uint64_t ticket, uint64_t* end) {
  EpQueue* queue = queues->first;
  for (; queue != NULL; queue = queue->next) {
    *end = queues->kind->end(queue);
    if (queue->ticket != ticket && !queues->kind->passed(queue, *end)) {
      break;
    }
  }
  return queue;
}

void ep_queues_retire(EpQueues* queues, EpRetirement* retirement,
                      void (*done)(EpRetirement* retirement)) {
  atomic_init(&retirement->references, 1);
  retirement->done = done;
  uint64_t end = 0;
  ep_mutex_lock(queues->mutex);
  uint64_t ticket = ++queues->tickets;
  for (EpQueue* queue = ep_queues_busy(queues, ticket, &end); queue != NULL;
       queue = ep_queues_busy(queues, ticket, &end)) {
    queue->ticket = ticket;
    if (!ep_retire_after(queue, end, retirement)) {
      ep_queue_retain(queue);
      ep_mutex_unlock(queues->mutex);
      queues->kind->await(queue, end);
      ep_queue_drop(queue);
      ep_mutex_lock(queues->mutex);
    }
  }
  ep_mutex_unlock(queues->mutex);
  ep_retirement_drop(retirement);
}
