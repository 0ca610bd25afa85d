/* nanosleep beside plain C11. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <stdatomic.h>
#include <stdlib.h>

#include "mock_share.h"
#include "sim_stream.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <time.h>
#endif

typedef struct SimSemaphore {
  MockShare share;
  _Atomic uint64_t* value;
  atomic_size_t pending; /* Waits and signals. */
} SimSemaphore;

typedef struct SimSemaphoreTask {
  SimTask base;
  SimSemaphore* semaphore;
  uint64_t value;
  int device;
} SimSemaphoreTask;

/* Waits that streams of each device hold. */
static atomic_size_t sim_waits[SIM_MAX_DEVICES];

static void sim_nap(void) {
#ifdef _WIN32
  Sleep(1);
#else
  struct timespec nap = {0, 200000};
  nanosleep(&nap, NULL);
#endif
}

void sim_block(const char* call) {
  if (atomic_load(&sim_waits[sim_current_device()]) != 0) {
    mock_offend("%s: blocks all, for a stream of the device waits for a semaphore", call);
  }
}

GpuResult sim_ImportExternalSemaphore(GpuExternalSemaphore* out,
                                      const GpuSemaphoreHandleDesc* desc) {
  if (!sim_has_context("ImportExternalSemaphore")) {
    return SIM_INVALID_CONTEXT;
  }
  unsigned type = (unsigned)desc->type;
  if (desc->flags != 0) {
    mock_offend("ImportExternalSemaphore: flags are %u", desc->flags);
    return SIM_INVALID_VALUE;
  }
  if (type >= 9 && mock_option("timeline", 1) == 0) {
    return (GpuResult)mock_option("timeline_refusal", SIM_NOT_SUPPORTED);
  }
  bool descriptor = type == 1 || type == 9;
  intptr_t native = descriptor ? desc->handle.fd : (intptr_t)desc->handle.win32.handle;
  SimSemaphore* semaphore = calloc(1, sizeof *semaphore);
  if (semaphore == NULL) {
    return SIM_OUT_OF_MEMORY;
  }
  if (!mock_share_open(&semaphore->share, native, descriptor, MOCK_SEMAPHORE_BYTES)) {
    free(semaphore);
    return SIM_INVALID_HANDLE;
  }
  semaphore->value = mock_map(native, MOCK_SEMAPHORE_BYTES);
  if (semaphore->value == NULL) {
    free(semaphore);
    return SIM_OUT_OF_MEMORY;
  }
  atomic_init(&semaphore->pending, 0);
  mock_object_add("external semaphore", semaphore, sizeof *semaphore);
  *out = (GpuExternalSemaphore)semaphore;
  return GPU_SUCCESS;
}

GpuResult sim_DestroyExternalSemaphore(GpuExternalSemaphore native) {
  SimSemaphore* semaphore = (SimSemaphore*)native;
  if (!sim_has_context("DestroyExternalSemaphore") ||
      !mock_object_remove("external semaphore", semaphore)) {
    return SIM_INVALID_HANDLE;
  }
  sim_block("DestroyExternalSemaphore");
  if (atomic_load(&semaphore->pending) != 0) {
    mock_offend("DestroyExternalSemaphore: waits or signals are pending");
  }
  mock_unmap((void*)(uintptr_t)semaphore->value, MOCK_SEMAPHORE_BYTES);
  mock_share_close(&semaphore->share);
  free(semaphore);
  return GPU_SUCCESS;
}

static void sim_semaphore_await(SimTask* base) {
  SimSemaphoreTask* task = (SimSemaphoreTask*)base;
  while (atomic_load(task->semaphore->value) < task->value) {
    sim_nap();
  }
  atomic_fetch_sub(&sim_waits[task->device], 1);
  atomic_fetch_sub(&task->semaphore->pending, 1);
}

static void sim_semaphore_signal(SimTask* base) {
  SimSemaphoreTask* task = (SimSemaphoreTask*)base;
  atomic_store(task->semaphore->value, task->value);
  atomic_fetch_sub(&task->semaphore->pending, 1);
}

static GpuResult sim_semaphore_enqueue(GpuExternalSemaphore native, uint64_t value, bool simple,
                                       GpuStream stream, void (*run)(SimTask*), const char* call) {
  SimSemaphore* semaphore = (SimSemaphore*)native;
  if (!mock_object_find("external semaphore", semaphore, NULL)) {
    mock_offend("%s: semaphore %p is not alive", call, (void*)semaphore);
    return SIM_INVALID_HANDLE;
  }
  if (!simple) {
    mock_offend("%s: flags or the count of semaphores are not as expected", call);
    return SIM_INVALID_VALUE;
  }
  if (!sim_has_context(call)) {
    return SIM_INVALID_CONTEXT;
  }
  int device = sim_current_device();
  bool waits = run == sim_semaphore_await;
  SimSemaphoreTask* task = malloc(sizeof *task);
  if (task != NULL) {
    *task = (SimSemaphoreTask){{NULL, run}, semaphore, value, device};
  }
  atomic_fetch_add(&semaphore->pending, 1);
  atomic_fetch_add(&sim_waits[device], waits);
  GpuResult result = sim_stream_enqueue(stream, task == NULL ? NULL : &task->base, call);
  if (result != GPU_SUCCESS) {
    atomic_fetch_sub(&semaphore->pending, 1);
    atomic_fetch_sub(&sim_waits[device], waits);
  }
  return result;
}

GpuResult sim_SignalExternalSemaphoresAsync(const GpuExternalSemaphore* semaphores,
                                            const GpuSignalParams* parameters, unsigned int count,
                                            GpuStream stream) {
  return sim_semaphore_enqueue(semaphores[0], parameters->params.fence.value,
                               count == 1 && parameters->flags == 0, stream, sim_semaphore_signal,
                               "SignalExternalSemaphoresAsync");
}

GpuResult sim_WaitExternalSemaphoresAsync(const GpuExternalSemaphore* semaphores,
                                          const GpuWaitParams* parameters, unsigned int count,
                                          GpuStream stream) {
  return sim_semaphore_enqueue(semaphores[0], parameters->params.fence.value,
                               count == 1 && parameters->flags == 0, stream, sim_semaphore_await,
                               "WaitExternalSemaphoresAsync");
}
