#include "host_queue.h"

#include <stdlib.h>

/* Freed by the owner or the worker, whoever comes last. */
struct EpDriverStream {
  HostQueues* queues;
  EpDriverStream* next;
  EpMutex mutex; /* Guards what follows; taken after the mutex of `queues`. */
  EpCondition changed;
  HostTask* first;
  HostTask** last;
  uint64_t pushed;
  uint64_t done;
  bool closing;
  size_t users;
  EpError error;
  void (*ended)(void* argument);
  void* argument;
};

typedef struct HostRetireTask {
  HostTask base;
  HostRetirement* retirement;
} HostRetireTask;

void host_queues_init(HostQueues* queues) {
  ep_mutex_init(&queues->mutex);
  queues->streams = NULL;
}

void host_queues_destroy(HostQueues* queues) {
  ep_mutex_destroy(&queues->mutex);
}

static void host_stream_unlink(EpDriverStream* stream) {
  ep_mutex_lock(&stream->queues->mutex);
  EpDriverStream** link = &stream->queues->streams;
  while (*link != stream) {
    link = &(*link)->next;
  }
  *link = stream->next;
  ep_mutex_unlock(&stream->queues->mutex);
}

static void host_stream_drop(EpDriverStream* stream) {
  ep_mutex_lock(&stream->mutex);
  bool last = --stream->users == 0;
  ep_mutex_unlock(&stream->mutex);
  if (last) {
    ep_condition_destroy(&stream->changed);
    ep_mutex_destroy(&stream->mutex);
    free(stream);
  }
}

/* Called with the mutex held; null when the stream is closed and empty. */
static HostTask* host_stream_pop(EpDriverStream* stream) {
  while (stream->first == NULL && !stream->closing) {
    ep_condition_wait(&stream->changed, &stream->mutex);
  }
  HostTask* task = stream->first;
  if (task != NULL) {
    stream->first = task->next;
    if (stream->first == NULL) {
      stream->last = &stream->first;
    }
  }
  return task;
}

static void host_stream_work(void* argument) {
  EpDriverStream* stream = argument;
  EpError error;
  ep_mutex_lock(&stream->mutex);
  for (HostTask* task = host_stream_pop(stream); task != NULL; task = host_stream_pop(stream)) {
    ep_mutex_unlock(&stream->mutex);
    bool good = task->run(task, &error);
    ep_mutex_lock(&stream->mutex);
    if (!good && stream->error.code == ORT_OK) {
      stream->error = error;
    }
    ++stream->done;
    ep_condition_broadcast(&stream->changed);
  }
  ep_mutex_unlock(&stream->mutex);
  void (*ended)(void*) = stream->ended;
  void* ended_argument = stream->argument;
  host_stream_unlink(stream);
  host_stream_drop(stream);
  ended(ended_argument);
}

EpDriverStream* host_stream_create(HostQueues* queues, void (*ended)(void* argument),
                                   void* argument) {
  EpDriverStream* stream = calloc(1, sizeof *stream);
  if (stream == NULL) {
    return NULL;
  }
  stream->queues = queues;
  ep_mutex_init(&stream->mutex);
  ep_condition_init(&stream->changed);
  stream->last = &stream->first;
  stream->users = 2;
  stream->ended = ended;
  stream->argument = argument;
  ep_error_clear(&stream->error);
  ep_mutex_lock(&queues->mutex);
  bool started = ep_thread_start(host_stream_work, stream);
  if (started) {
    stream->next = queues->streams;
    queues->streams = stream;
  }
  ep_mutex_unlock(&queues->mutex);
  if (!started) {
    ep_condition_destroy(&stream->changed);
    ep_mutex_destroy(&stream->mutex);
    free(stream);
    return NULL;
  }
  return stream;
}

bool host_stream_is_of(HostQueues* queues, const void* native) {
  ep_mutex_lock(&queues->mutex);
  const EpDriverStream* stream = queues->streams;
  while (stream != NULL && stream != native) {
    stream = stream->next;
  }
  ep_mutex_unlock(&queues->mutex);
  return stream != NULL;
}

void host_stream_release(EpDriverStream* stream) {
  ep_mutex_lock(&stream->mutex);
  stream->closing = true;
  ep_condition_broadcast(&stream->changed);
  ep_mutex_unlock(&stream->mutex);
  host_stream_drop(stream);
}

/* Called with the mutex held. */
static void host_stream_append(EpDriverStream* stream, HostTask* task) {
  task->next = NULL;
  *stream->last = task;
  stream->last = &task->next;
  ++stream->pushed;
  ep_condition_broadcast(&stream->changed);
}

void host_stream_push(EpDriverStream* stream, HostTask* task) {
  ep_mutex_lock(&stream->mutex);
  host_stream_append(stream, task);
  ep_mutex_unlock(&stream->mutex);
}

bool host_stream_do_if_idle(EpDriverStream* stream, void (*work)(void* argument), void* argument) {
  ep_mutex_lock(&stream->mutex);
  bool idle = stream->done == stream->pushed;
  if (idle) {
    work(argument);
  }
  ep_mutex_unlock(&stream->mutex);
  return idle;
}

/* Blocks until `stream` has done what it holds; its mutex is held. */
static void host_stream_settle(EpDriverStream* stream) {
  uint64_t target = stream->pushed;
  while (stream->done < target) {
    ep_condition_wait(&stream->changed, &stream->mutex);
  }
}

bool host_stream_flush(EpDriverStream* stream, EpError* error) {
  ep_mutex_lock(&stream->mutex);
  host_stream_settle(stream);
  bool good = stream->error.code == ORT_OK;
  if (!good) {
    *error = stream->error;
    ep_error_clear(&stream->error);
  }
  ep_mutex_unlock(&stream->mutex);
  return good;
}

static void host_retirement_release(HostRetirement* retirement) {
  if (atomic_fetch_sub_explicit(&retirement->references, 1, memory_order_acq_rel) == 1) {
    retirement->done(retirement);
  }
}

static bool host_retire_run(HostTask* base, EpError* error) {
  (void)error;
  HostRetireTask* task = (HostRetireTask*)base;
  host_retirement_release(task->retirement);
  free(task);
  return true;
}

static void host_stream_retire(EpDriverStream* stream, HostRetirement* retirement) {
  ep_mutex_lock(&stream->mutex);
  if (stream->done < stream->pushed) {
    HostRetireTask* task = malloc(sizeof *task);
    if (task == NULL) {
      host_stream_settle(stream);
    } else {
      atomic_fetch_add_explicit(&retirement->references, 1, memory_order_relaxed);
      task->base.run = host_retire_run;
      task->retirement = retirement;
      host_stream_append(stream, &task->base);
    }
  }
  ep_mutex_unlock(&stream->mutex);
}

void host_queues_retire(HostQueues* queues, HostRetirement* retirement,
                        void (*done)(HostRetirement* retirement)) {
  retirement->done = done;
  atomic_init(&retirement->references, 1);
  ep_mutex_lock(&queues->mutex);
  for (EpDriverStream* stream = queues->streams; stream != NULL; stream = stream->next) {
    host_stream_retire(stream, retirement);
  }
  ep_mutex_unlock(&queues->mutex);
  host_retirement_release(retirement);
}
