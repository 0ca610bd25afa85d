#include <stdlib.h>

#include "gpu_device.h"

/* Points in the streams that had work; when all have passed, that work is done. */
typedef struct GpuMark {
  GpuContext* context;
  GpuEvent event;
} GpuMark;

typedef struct GpuMarks {
  size_t count;
  GpuMark marks[];
} GpuMarks;

struct GpuRetired {
  GpuRetired* next;
  GpuContext* context;
  GpuRelease* release;
  void* object;
  GpuMarks* marks;
};

static void gpu_marks_destroy(GpuMarks* marks) {
  for (size_t i = 0; i < marks->count; ++i) {
    GpuContext* context = marks->marks[i].context;
    GpuScope scope;
    if (gpu_enter_to_release(context, &scope)) {
      (void)context->device->driver->api.EventDestroy(marks->marks[i].event);
      (void)gpu_leave(&scope, true);
    }
    gpu_context_drop(context);
  }
  free(marks);
}

/* Adds a mark if `stream` has work; its context is current. */
static bool gpu_mark(GpuMarks* marks, EpDriverStream* stream, EpError* error) {
  EpDriverDevice* device = stream->context->device;
  GpuResult result = device->driver->api.StreamQuery(stream->native);
  if (result != GPU_NOT_READY) {
    return gpu_check(result, DRIVER_NAME_StreamQuery, error);
  }
  GpuMark* mark = &marks->marks[marks->count];
  if (!GPU_CALL(device, error, EventCreate, &mark->event,
                GPU_EVENT_DISABLE_TIMING | GPU_EVENT_BLOCKING_SYNC)) {
    return false;
  }
  mark->context = stream->context;
  gpu_context_retain(mark->context);
  ++marks->count;
  return GPU_CALL(device, error, EventRecord, mark->event, stream->native);
}

/* Marks on every stream of `device` that has work; null, with `error` written, on failure. */
static GpuMarks* gpu_marks_create(EpDriverDevice* device, EpError* error) {
  ep_mutex_lock(&device->mutex);
  size_t count = 0;
  for (EpDriverStream* stream = device->streams; stream != NULL; stream = stream->next) {
    ++count;
  }
  GpuMarks* marks = calloc(1, sizeof *marks + count * sizeof marks->marks[0]);
  bool good = marks != NULL || gpu_out_of_memory(error);
  for (EpDriverStream* stream = device->streams; good && stream != NULL; stream = stream->next) {
    GpuScope scope;
    good = gpu_enter(stream->context, &scope, error) &&
           gpu_leave(&scope, gpu_mark(marks, stream, error));
  }
  ep_mutex_unlock(&device->mutex);
  if (!good && marks != NULL) {
    gpu_marks_destroy(marks);
  }
  return good ? marks : NULL;
}

/* Blocks until the work before every mark is done. */
static bool gpu_marks_wait(const GpuMarks* marks, EpError* error) {
  bool good = true;
  for (size_t i = 0; i < marks->count; ++i) {
    GpuContext* context = marks->marks[i].context;
    GpuScope scope;
    bool entered = gpu_enter(context, &scope, error);
    good = entered && GPU_CALL(context->device, error, EventSynchronize, marks->marks[i].event) &&
           good;
    if (entered) {
      (void)gpu_leave(&scope, true);
    }
  }
  return good;
}

bool ep_driver_device_flush(EpDriverDevice* device, EpError* error) {
  GpuMarks* marks = gpu_marks_create(device, error);
  if (marks == NULL) {
    return false;
  }
  bool good = gpu_marks_wait(marks, error);
  gpu_marks_destroy(marks);
  return good;
}

static void gpu_release_now(GpuContext* context, GpuRelease* release, void* object) {
  GpuScope scope;
  bool entered = gpu_enter_to_release(context, &scope);
  release(context, object);
  if (entered) {
    (void)gpu_leave(&scope, true);
  }
  gpu_context_drop(context);
}

/* Waits and releases; a failed wait is tried once more, then the context is past all work. */
static void gpu_retired_finish(GpuRetired* retired) {
  EpError ignored;
  if (!gpu_marks_wait(retired->marks, &ignored)) {
    (void)gpu_marks_wait(retired->marks, &ignored);
  }
  gpu_marks_destroy(retired->marks);
  gpu_release_now(retired->context, retired->release, retired->object);
  free(retired);
}

static void gpu_reap(void* argument) {
  EpDriverDevice* device = argument;
  EpDriver* driver = device->driver;
  for (;;) {
    ep_mutex_lock(&device->mutex);
    GpuRetired* retired = device->retired;
    if (retired == NULL) {
      device->reaping = false;
    } else {
      device->retired = retired->next;
      if (device->retired == NULL) {
        device->retired_end = &device->retired;
      }
    }
    ep_mutex_unlock(&device->mutex);
    if (retired == NULL) {
      break;
    }
    gpu_retired_finish(retired);
  }
  gpu_driver_drop(driver);
}

/* Leaves `retired` to the device's thread, which is started if there is none; false if it cannot
 * be, and then `retired` is the caller's still. */
static bool gpu_retire_later(EpDriverDevice* device, GpuRetired* retired) {
  ep_mutex_lock(&device->mutex);
  bool good = device->reaping;
  if (!good) {
    gpu_driver_retain(device->driver);
    good = ep_thread_start(gpu_reap, device);
    device->reaping = good;
  }
  if (good) {
    *device->retired_end = retired;
    device->retired_end = &retired->next;
  }
  ep_mutex_unlock(&device->mutex);
  return good;
}

void gpu_retire(GpuContext* context, GpuRelease* release, void* object) {
  EpDriverDevice* device = context->device;
  EpError ignored;
  GpuMarks* marks = gpu_marks_create(device, &ignored);
  if (marks == NULL) {
    marks = gpu_marks_create(device, &ignored);
  }
  GpuRetired* retired = marks != NULL && marks->count > 0 ? calloc(1, sizeof *retired) : NULL;
  if (retired == NULL) {
    /* Idle, or a driver that fails twice and does no work any more, or short of memory. */
    if (marks != NULL) {
      (void)gpu_marks_wait(marks, &ignored);
      gpu_marks_destroy(marks);
    }
    gpu_release_now(context, release, object);
    return;
  }
  *retired = (GpuRetired){.context = context, .release = release, .object = object, .marks = marks};
  if (!gpu_retire_later(device, retired)) {
    gpu_driver_drop(device->driver);
    gpu_retired_finish(retired);
  }
}
