#include "sim_stream.h"

#include <stdlib.h>
#include <string.h>

#include "ep_platform.h"

typedef struct SimStream {
  SimTask* first;
  SimTask** end;
  size_t unfinished;
  bool working; /* There is a thread. */
  bool destroyed;
} SimStream;

typedef struct SimEvent {
  size_t references;
  uint64_t recorded;
  uint64_t happened;
} SimEvent;

typedef struct SimEventTask {
  SimTask base;
  SimEvent* event;
  uint64_t value;
} SimEventTask;

typedef struct SimHostTask {
  SimTask base;
  GpuHostFunction function;
  void* argument;
} SimHostTask;

typedef struct SimCopyTask {
  SimTask base;
  void* destination;
  const void* source;
  size_t bytes;
} SimCopyTask;

/* One lock for all streams and events keeps the simulation simple. */
static EpMutex sim_mutex;
static EpCondition sim_changed;

__attribute__((constructor)) static void sim_stream_start(void) {
  ep_mutex_init(&sim_mutex);
  ep_condition_init(&sim_changed);
}

static void sim_work(void* argument) {
  SimStream* stream = argument;
  ep_mutex_lock(&sim_mutex);
  while (stream->first != NULL) {
    SimTask* task = stream->first;
    stream->first = task->next;
    if (stream->first == NULL) {
      stream->end = &stream->first;
    }
    ep_mutex_unlock(&sim_mutex);
    task->run(task);
    free(task);
    ep_mutex_lock(&sim_mutex);
    --stream->unfinished;
    ep_condition_broadcast(&sim_changed);
  }
  stream->working = false;
  bool destroyed = stream->destroyed;
  ep_mutex_unlock(&sim_mutex);
  if (destroyed) {
    free(stream);
  }
}

static bool sim_stream_exists(GpuStream stream, const char* call) {
  bool exists = mock_object_find("stream", stream, NULL);
  if (!exists) {
    mock_offend("%s: stream %p is not alive", call, (void*)stream);
  }
  return exists;
}

GpuResult sim_stream_enqueue(GpuStream native, SimTask* task, const char* call) {
  if (task == NULL) {
    return SIM_OUT_OF_MEMORY;
  }
  if (!sim_has_context(call) || !sim_stream_exists(native, call)) {
    free(task);
    return SIM_INVALID_HANDLE;
  }
  SimStream* stream = (SimStream*)native;
  task->next = NULL;
  ep_mutex_lock(&sim_mutex);
  *stream->end = task;
  stream->end = &task->next;
  ++stream->unfinished;
  if (!stream->working) {
    stream->working = ep_thread_start(sim_work, stream);
    if (!stream->working) {
      abort();
    }
  }
  ep_mutex_unlock(&sim_mutex);
  return GPU_SUCCESS;
}

bool sim_stream_is_busy(GpuStream native) {
  ep_mutex_lock(&sim_mutex);
  bool busy = ((SimStream*)native)->unfinished > 0;
  ep_mutex_unlock(&sim_mutex);
  return busy;
}

void sim_stream_wait(GpuStream native) {
  ep_mutex_lock(&sim_mutex);
  while (((SimStream*)native)->unfinished > 0) {
    ep_condition_wait(&sim_changed, &sim_mutex);
  }
  ep_mutex_unlock(&sim_mutex);
}

GpuResult sim_StreamCreate(GpuStream* out, unsigned int flags) {
  if (!sim_has_context("StreamCreate")) {
    return SIM_INVALID_CONTEXT;
  }
  if (flags != GPU_STREAM_NON_BLOCKING) {
    mock_offend("StreamCreate: flags are %u: the stream would wait for the null stream", flags);
  }
  SimStream* stream = calloc(1, sizeof *stream);
  if (stream == NULL) {
    return SIM_OUT_OF_MEMORY;
  }
  stream->end = &stream->first;
  mock_object_add("stream", stream, sizeof *stream);
  *out = (GpuStream)stream;
  return GPU_SUCCESS;
}

GpuResult sim_StreamDestroy(GpuStream native) {
  SimStream* stream = (SimStream*)native;
  if (!sim_has_context("StreamDestroy") || !mock_object_remove("stream", stream)) {
    return SIM_INVALID_HANDLE;
  }
  ep_mutex_lock(&sim_mutex);
  bool working = stream->working;
  stream->destroyed = true;
  ep_mutex_unlock(&sim_mutex);
  if (!working) {
    free(stream);
  }
  return GPU_SUCCESS;
}

GpuResult sim_StreamQuery(GpuStream stream) {
  if (!sim_has_context("StreamQuery") || !sim_stream_exists(stream, "StreamQuery")) {
    return SIM_INVALID_HANDLE;
  }
  return sim_stream_is_busy(stream) ? GPU_NOT_READY : GPU_SUCCESS;
}

GpuResult sim_StreamSynchronize(GpuStream stream) {
  if (!sim_has_context("StreamSynchronize") || !sim_stream_exists(stream, "StreamSynchronize")) {
    return SIM_INVALID_HANDLE;
  }
  sim_stream_wait(stream);
  return GPU_SUCCESS;
}

GpuResult sim_EventCreate(GpuEvent* out, unsigned int flags) {
  if (!sim_has_context("EventCreate")) {
    return SIM_INVALID_CONTEXT;
  }
  if ((flags & GPU_EVENT_DISABLE_TIMING) == 0) {
    mock_offend("EventCreate: flags are %u: timing slows events down", flags);
  }
  SimEvent* event = calloc(1, sizeof *event);
  if (event == NULL) {
    return SIM_OUT_OF_MEMORY;
  }
  event->references = 1;
  mock_object_add("event", event, sizeof *event);
  *out = (GpuEvent)event;
  return GPU_SUCCESS;
}

/* The lock is held. */
static void sim_event_drop(SimEvent* event) {
  if (--event->references == 0) {
    free(event);
  }
}

GpuResult sim_EventDestroy(GpuEvent native) {
  SimEvent* event = (SimEvent*)native;
  if (!sim_has_context("EventDestroy") || !mock_object_remove("event", event)) {
    return SIM_INVALID_HANDLE;
  }
  ep_mutex_lock(&sim_mutex);
  sim_event_drop(event);
  ep_mutex_unlock(&sim_mutex);
  return GPU_SUCCESS;
}

static bool sim_event_exists(GpuEvent event, const char* call) {
  bool exists = mock_object_find("event", event, NULL);
  if (!exists) {
    mock_offend("%s: event %p is not alive", call, (void*)event);
  }
  return exists && sim_has_context(call);
}

static void sim_event_happen(SimTask* base) {
  SimEventTask* task = (SimEventTask*)base;
  ep_mutex_lock(&sim_mutex);
  if (task->event->happened < task->value) {
    task->event->happened = task->value;
  }
  sim_event_drop(task->event);
  ep_condition_broadcast(&sim_changed);
  ep_mutex_unlock(&sim_mutex);
}

static void sim_event_await(SimTask* base) {
  SimEventTask* task = (SimEventTask*)base;
  ep_mutex_lock(&sim_mutex);
  while (task->event->happened < task->value) {
    ep_condition_wait(&sim_changed, &sim_mutex);
  }
  sim_event_drop(task->event);
  ep_mutex_unlock(&sim_mutex);
}

/* A task that refers to the latest record of `event`, or with `advance` is the next one. */
static SimTask* sim_event_task(GpuEvent native, bool advance) {
  SimEventTask* task = malloc(sizeof *task);
  if (task == NULL) {
    return NULL;
  }
  SimEvent* event = (SimEvent*)native;
  ep_mutex_lock(&sim_mutex);
  event->recorded += advance;
  ++event->references;
  *task =
      (SimEventTask){{NULL, advance ? sim_event_happen : sim_event_await}, event, event->recorded};
  ep_mutex_unlock(&sim_mutex);
  return &task->base;
}

GpuResult sim_EventRecord(GpuEvent event, GpuStream stream) {
  if (!sim_event_exists(event, "EventRecord") || !sim_stream_exists(stream, "EventRecord")) {
    return SIM_INVALID_HANDLE;
  }
  return sim_stream_enqueue(stream, sim_event_task(event, true), "EventRecord");
}

GpuResult sim_StreamWaitEvent(GpuStream stream, GpuEvent event, unsigned int flags) {
  (void)flags;
  if (!sim_event_exists(event, "StreamWaitEvent") ||
      !sim_stream_exists(stream, "StreamWaitEvent")) {
    return SIM_INVALID_HANDLE;
  }
  return sim_stream_enqueue(stream, sim_event_task(event, false), "StreamWaitEvent");
}

GpuResult sim_EventSynchronize(GpuEvent native) {
  if (!sim_event_exists(native, "EventSynchronize")) {
    return SIM_INVALID_HANDLE;
  }
  SimEvent* event = (SimEvent*)native;
  ep_mutex_lock(&sim_mutex);
  uint64_t value = event->recorded;
  ++event->references;
  while (event->happened < value) {
    ep_condition_wait(&sim_changed, &sim_mutex);
  }
  sim_event_drop(event);
  ep_mutex_unlock(&sim_mutex);
  return GPU_SUCCESS;
}

static void sim_host_run(SimTask* base) {
  SimHostTask* task = (SimHostTask*)base;
  task->function(task->argument);
}

GpuResult sim_LaunchHostFunc(GpuStream stream, GpuHostFunction function, void* argument) {
  SimHostTask* task = malloc(sizeof *task);
  if (task != NULL) {
    *task = (SimHostTask){{NULL, sim_host_run}, function, argument};
  }
  return sim_stream_enqueue(stream, task == NULL ? NULL : &task->base, "LaunchHostFunc");
}

static void sim_copy_run(SimTask* base) {
  SimCopyTask* task = (SimCopyTask*)base;
  memmove(task->destination, task->source, task->bytes);
}

GpuResult sim_copy(void* destination, const void* source, size_t bytes, const void* host,
                   GpuStream stream) {
  if (!sim_stream_exists(stream, "Memcpy")) {
    return SIM_INVALID_HANDLE;
  }
  SimCopyTask* task = malloc(sizeof *task);
  if (task != NULL) {
    *task = (SimCopyTask){{NULL, sim_copy_run}, destination, source, bytes};
  }
  bool pageable = host != NULL && !mock_object_contains("host memory", host) &&
                  !mock_object_contains("registration", host);
  bool busy = sim_stream_is_busy(stream);
  GpuResult result = sim_stream_enqueue(stream, task == NULL ? NULL : &task->base, "Memcpy");
  /* As the real driver does: a copy of pageable memory waits for the stream. */
  if (result == GPU_SUCCESS && pageable) {
    if (busy) {
      mock_offend("Memcpy: pageable memory %p on a stream with work blocks the caller", host);
    }
    sim_stream_wait(stream);
  }
  return result;
}
