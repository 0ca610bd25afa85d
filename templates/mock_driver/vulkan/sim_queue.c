/* nanosleep beside plain C11. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

/* Command buffers, timelines and queues; a queue is a thread that works in order. */
#include <stdlib.h>

#include "sim_vulkan.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <time.h>
#endif

#define SIM_MAX_QUEUES 16
#define SIM_MAX_POINTS 4

typedef struct SimPoint {
  SimSemaphore* semaphore;
  uint64_t value;
} SimPoint;

typedef struct SimSubmission {
  struct SimSubmission* next;
  SimPoint waits[SIM_MAX_POINTS];
  size_t wait_count;
  SimCommands* commands;
  SimPoint signals[SIM_MAX_POINTS];
  size_t signal_count;
} SimSubmission;

typedef struct SimQueue {
  bool started;
  SimSubmission* first;
  SimSubmission** last;
} SimQueue;

static struct {
  bool ready;
  EpMutex mutex;
  EpCondition changed;
  SimQueue queues[SIM_MAX_QUEUES];
  bool stopping;
  size_t threads;
} sim;

void sim_nap(void) {
#ifdef _WIN32
  Sleep(1);
#else
  struct timespec nap = {0, 100000};
  nanosleep(&nap, NULL);
#endif
}

void sim_queues_start(void) {
  if (!sim.ready) {
    ep_mutex_init(&sim.mutex);
    ep_condition_init(&sim.changed);
    sim.ready = true;
  }
  sim.stopping = false;
}

void sim_queues_stop(void) {
  ep_mutex_lock(&sim.mutex);
  for (size_t i = 0; i < SIM_MAX_QUEUES; ++i) {
    if (sim.queues[i].first != NULL) {
      mock_offend("vkDestroyDevice: queue %zu still has work", i);
    }
  }
  sim.stopping = true;
  ep_condition_broadcast(&sim.changed);
  while (sim.threads > 0) {
    ep_condition_wait(&sim.changed, &sim.mutex);
  }
  ep_mutex_unlock(&sim.mutex);
}

/* Option `lost`: 1 for a device whose every call tells, 2 for one whose counters stand still. */
static bool sim_is_lost(void) {
  return mock_option("lost", 0) != 0;
}

bool sim_is_used(atomic_size_t* pending) {
  while (sim_is_lost() && atomic_load(pending) != 0) {
    sim_nap();
  }
  return atomic_load(pending) != 0;
}

static void sim_copy(const SimCopy* copy) {
  memmove(copy->destination->memory->data + copy->range.dstOffset,
          copy->source->memory->data + copy->range.srcOffset, (size_t)copy->range.size);
}

static void sim_raise(SimSemaphore* semaphore, uint64_t value) {
  uint64_t before = atomic_load(semaphore->value);
  if (value <= before) {
    mock_offend("a timeline at %llu is signalled with %llu", (unsigned long long)before,
                (unsigned long long)value);
  }
  atomic_store(semaphore->value, value);
}

static void sim_execute(SimSubmission* submission) {
  for (size_t i = 0; i < submission->wait_count; ++i) {
    SimPoint* wait = &submission->waits[i];
    bool reached = atomic_load(wait->semaphore->value) >= wait->value;
    if (!reached && !sim_is_lost() && mock_option("queues_wait", 1) == 0) {
      mock_offend("a queue waits for %llu", (unsigned long long)wait->value);
    }
    while (atomic_load(wait->semaphore->value) < wait->value && !sim_is_lost()) {
      sim_nap();
    }
    atomic_fetch_sub(&wait->semaphore->pending, 1);
  }
  SimCommands* commands = submission->commands;
  if (commands != NULL) {
    long delay = mock_option("copy_delay_ms", 0);
    for (long i = 0; i < delay; ++i) {
      sim_nap();
    }
    for (size_t i = 0; i < commands->copy_count; ++i) {
      if (!sim_is_lost()) {
        sim_copy(&commands->copies[i]);
      }
      atomic_fetch_sub(&commands->copies[i].source->pending, 1);
      atomic_fetch_sub(&commands->copies[i].destination->pending, 1);
    }
    atomic_fetch_sub(&commands->pending, 1);
  }
  for (size_t i = 0; i < submission->signal_count; ++i) {
    SimSemaphore* semaphore = submission->signals[i].semaphore;
    bool lost = sim_is_lost();
    /* Who waits for the value may destroy the semaphore at once. */
    atomic_fetch_sub(&semaphore->pending, 1);
    if (!lost) {
      sim_raise(semaphore, submission->signals[i].value);
    }
  }
  free(submission);
}

static void sim_work(void* argument) {
  SimQueue* queue = argument;
  ep_mutex_lock(&sim.mutex);
  for (;;) {
    while (queue->first == NULL && !sim.stopping) {
      ep_condition_wait(&sim.changed, &sim.mutex);
    }
    SimSubmission* submission = queue->first;
    if (submission == NULL) {
      break;
    }
    queue->first = submission->next;
    if (queue->first == NULL) {
      queue->last = &queue->first;
    }
    ep_mutex_unlock(&sim.mutex);
    sim_execute(submission);
    ep_mutex_lock(&sim.mutex);
  }
  queue->started = false;
  --sim.threads;
  ep_condition_broadcast(&sim.changed);
  ep_mutex_unlock(&sim.mutex);
}

void sim_vkGetDeviceQueue(VkDevice device, uint32_t family, uint32_t index, VkQueue* queue) {
  (void)device;
  if (family != 0 || index >= (uint32_t)mock_option("queues", 4)) {
    mock_offend("vkGetDeviceQueue: queue %u of family %u", (unsigned)index, (unsigned)family);
  }
  *queue = (VkQueue)&sim.queues[index];
}

static void sim_take_points(SimSubmission* submission, const VkSubmitInfo* info) {
  const VkTimelineSemaphoreSubmitInfo* values =
      sim_chained(info->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  if (values == NULL || values->waitSemaphoreValueCount != info->waitSemaphoreCount ||
      values->signalSemaphoreValueCount != info->signalSemaphoreCount ||
      info->waitSemaphoreCount > SIM_MAX_POINTS || info->signalSemaphoreCount > SIM_MAX_POINTS) {
    mock_offend("vkQueueSubmit: timelines without a value each");
    return;
  }
  for (uint32_t i = 0; i < info->waitSemaphoreCount; ++i) {
    SimSemaphore* semaphore = (SimSemaphore*)info->pWaitSemaphores[i];
    atomic_fetch_add(&semaphore->pending, 1);
    submission->waits[i] = (SimPoint){semaphore, values->pWaitSemaphoreValues[i]};
  }
  submission->wait_count = info->waitSemaphoreCount;
  for (uint32_t i = 0; i < info->signalSemaphoreCount; ++i) {
    SimSemaphore* semaphore = (SimSemaphore*)info->pSignalSemaphores[i];
    atomic_fetch_add(&semaphore->pending, 1);
    submission->signals[i] = (SimPoint){semaphore, values->pSignalSemaphoreValues[i]};
  }
  submission->signal_count = info->signalSemaphoreCount;
}

static void sim_take_commands(SimSubmission* submission, const VkSubmitInfo* info) {
  if (info->commandBufferCount == 0) {
    return;
  }
  SimCommands* commands = (SimCommands*)info->pCommandBuffers[0];
  if (info->commandBufferCount > 1 || !commands->ended || commands->acquired_count != 0) {
    mock_offend("vkQueueSubmit: %u command buffers, ended %d, external buffers not given back %zu",
                (unsigned)info->commandBufferCount, (int)commands->ended, commands->acquired_count);
  }
  atomic_fetch_add(&commands->pending, 1);
  for (size_t i = 0; i < commands->copy_count; ++i) {
    atomic_fetch_add(&commands->copies[i].source->pending, 1);
    atomic_fetch_add(&commands->copies[i].destination->pending, 1);
  }
  submission->commands = commands;
}

static SimSubmission* sim_submission(const VkSubmitInfo* info) {
  SimSubmission* submission = calloc(1, sizeof *submission);
  if (submission != NULL) {
    sim_take_points(submission, info);
    sim_take_commands(submission, info);
  }
  return submission;
}

VkResult sim_vkQueueSubmit(VkQueue native, uint32_t count, const VkSubmitInfo* submits,
                           VkFence fence) {
  SimQueue* queue = (SimQueue*)native;
  if (count == 0 || count > 2 || fence != NULL) {
    mock_offend("vkQueueSubmit: %u batches, or a fence", (unsigned)count);
    return VK_ERROR_UNKNOWN;
  }
  long refusals = mock_option("submit_refusals", 0);
  if (sim_is_lost()) {
    return VK_ERROR_DEVICE_LOST;
  }
  if (refusals > 0) {
    mock_set_option("submit_refusals", refusals - 1);
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  SimSubmission* first = sim_submission(submits);
  SimSubmission* last = count == 2 ? sim_submission(&submits[1]) : first;
  if (first == NULL || last == NULL) {
    abort();
  }
  if (last != first) {
    first->next = last;
  }
  ep_mutex_lock(&sim.mutex);
  if (queue->first == NULL) {
    queue->last = &queue->first;
  }
  *queue->last = first;
  queue->last = &last->next;
  if (!queue->started) {
    queue->started = true;
    ++sim.threads;
    (void)ep_thread_start(sim_work, queue);
  }
  ep_condition_broadcast(&sim.changed);
  ep_mutex_unlock(&sim.mutex);
  return VK_SUCCESS;
}

VkResult sim_vkCreateCommandPool(VkDevice device, const VkCommandPoolCreateInfo* info,
                                 const VkAllocationCallbacks* allocator, VkCommandPool* pool) {
  (void)device;
  (void)info;
  (void)allocator;
  void* object = calloc(1, 1);
  mock_object_add("command pool", object, 1);
  *pool = object;
  return VK_SUCCESS;
}

void sim_vkDestroyCommandPool(VkDevice device, VkCommandPool pool,
                              const VkAllocationCallbacks* allocator) {
  (void)device;
  (void)allocator;
  (void)mock_object_remove("command pool", pool);
  free(pool);
}

VkResult sim_vkAllocateCommandBuffers(VkDevice device, const VkCommandBufferAllocateInfo* info,
                                      VkCommandBuffer* buffers) {
  (void)device;
  SimCommands* commands = calloc(1, sizeof *commands);
  if (commands == NULL) {
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  commands->pool = info->commandPool;
  mock_object_add("command buffer", commands, sizeof *commands);
  buffers[0] = (VkCommandBuffer)commands;
  return VK_SUCCESS;
}

void sim_vkFreeCommandBuffers(VkDevice device, VkCommandPool pool, uint32_t count,
                              const VkCommandBuffer* buffers) {
  (void)device;
  (void)count;
  SimCommands* commands = (SimCommands*)buffers[0];
  if (!mock_object_remove("command buffer", commands)) {
    return;
  }
  if (sim_is_used(&commands->pending) || commands->pool != pool) {
    mock_offend("vkFreeCommandBuffers: it is in use, or of another pool");
  }
  free(commands);
}

VkResult sim_vkBeginCommandBuffer(VkCommandBuffer native, const VkCommandBufferBeginInfo* info) {
  (void)info;
  ((SimCommands*)native)->recording = true;
  return VK_SUCCESS;
}

VkResult sim_vkEndCommandBuffer(VkCommandBuffer native) {
  SimCommands* commands = (SimCommands*)native;
  commands->ended = commands->recording;
  commands->recording = false;
  return VK_SUCCESS;
}

static bool sim_is_acquired(const SimCommands* commands, const SimBuffer* buffer) {
  for (size_t i = 0; i < commands->acquired_count; ++i) {
    if (commands->acquired[i] == buffer) {
      return true;
    }
  }
  return buffer->external == 0;
}

void sim_vkCmdCopyBuffer(VkCommandBuffer native, VkBuffer source, VkBuffer destination,
                         uint32_t count, const VkBufferCopy* ranges) {
  SimCommands* commands = (SimCommands*)native;
  SimCopy copy = {(SimBuffer*)source, (SimBuffer*)destination, ranges[0]};
  if (count != 1 || !commands->recording || commands->copy_count == SIM_MAX_COPIES ||
      copy.range.size == 0 || copy.range.srcOffset + copy.range.size > copy.source->bytes ||
      copy.range.dstOffset + copy.range.size > copy.destination->bytes) {
    mock_offend("vkCmdCopyBuffer: past the end, or at the wrong time");
    return;
  }
  if (!sim_is_acquired(commands, copy.source) || !sim_is_acquired(commands, copy.destination)) {
    mock_offend("vkCmdCopyBuffer: an external buffer was not acquired");
  }
  commands->copies[commands->copy_count++] = copy;
}

void sim_vkCmdPipelineBarrier(VkCommandBuffer native, VkPipelineStageFlags from,
                              VkPipelineStageFlags to, VkDependencyFlags flags,
                              uint32_t memory_count, const VkMemoryBarrier* memory,
                              uint32_t buffer_count, const VkBufferMemoryBarrier* buffers,
                              uint32_t image_count, const VkImageMemoryBarrier* images) {
  (void)from;
  (void)to;
  (void)flags;
  (void)memory_count;
  (void)memory;
  (void)image_count;
  (void)images;
  SimCommands* commands = (SimCommands*)native;
  for (uint32_t i = 0; i < buffer_count; ++i) {
    SimBuffer* buffer = (SimBuffer*)buffers[i].buffer;
    if (buffers[i].dstQueueFamilyIndex == 0) {
      commands->acquired[commands->acquired_count++] = buffer;
      continue;
    }
    size_t kept = 0;
    for (size_t k = 0; k < commands->acquired_count; ++k) {
      if (commands->acquired[k] != buffer) {
        commands->acquired[kept++] = commands->acquired[k];
      }
    }
    if (kept == commands->acquired_count) {
      mock_offend("vkCmdPipelineBarrier: a buffer is released that was not acquired");
    }
    commands->acquired_count = kept;
  }
}

VkResult sim_vkCreateSemaphore(VkDevice device, const VkSemaphoreCreateInfo* info,
                               const VkAllocationCallbacks* allocator, VkSemaphore* out) {
  (void)device;
  (void)allocator;
  const VkSemaphoreTypeCreateInfo* type =
      sim_chained(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  if (type == NULL || type->semaphoreType != VK_SEMAPHORE_TYPE_TIMELINE) {
    mock_offend("vkCreateSemaphore: it is not a timeline");
  }
  SimSemaphore* semaphore = calloc(1, sizeof *semaphore);
  if (semaphore == NULL) {
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  atomic_init(&semaphore->own, type == NULL ? 0 : type->initialValue);
  atomic_init(&semaphore->pending, 0);
  semaphore->value = &semaphore->own;
  mock_object_add("semaphore", semaphore, sizeof *semaphore);
  *out = (VkSemaphore)semaphore;
  return VK_SUCCESS;
}

void sim_vkDestroySemaphore(VkDevice device, VkSemaphore native,
                            const VkAllocationCallbacks* allocator) {
  (void)device;
  (void)allocator;
  SimSemaphore* semaphore = (SimSemaphore*)native;
  bool imported = semaphore != NULL && semaphore->value != &semaphore->own;
  const char* kind = imported ? "external semaphore" : "semaphore";
  if (semaphore == NULL || !mock_object_remove(kind, semaphore)) {
    return;
  }
  if (sim_is_used(&semaphore->pending)) {
    mock_offend("vkDestroySemaphore: a submission or a waiting thread still uses it");
  }
  if (semaphore->value != &semaphore->own) {
    mock_unmap((void*)(uintptr_t)semaphore->value, MOCK_SEMAPHORE_BYTES);
    mock_share_close(&semaphore->share);
  }
  free(semaphore);
}

VkResult sim_vkWaitSemaphores(VkDevice device, const VkSemaphoreWaitInfo* info, uint64_t timeout) {
  (void)device;
  (void)timeout;
  if (info->semaphoreCount != 1 || timeout != UINT64_MAX) {
    mock_offend("vkWaitSemaphores: %u semaphores", (unsigned)info->semaphoreCount);
  }
  SimSemaphore* semaphore = (SimSemaphore*)info->pSemaphores[0];
  atomic_fetch_add(&semaphore->pending, 1);
  while (atomic_load(semaphore->value) < info->pValues[0] && !sim_is_lost()) {
    sim_nap();
  }
  atomic_fetch_sub(&semaphore->pending, 1);
  return sim_is_lost() ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
}

VkResult sim_vkSignalSemaphore(VkDevice device, const VkSemaphoreSignalInfo* info) {
  (void)device;
  if (sim_is_lost()) {
    return VK_ERROR_DEVICE_LOST;
  }
  sim_raise((SimSemaphore*)info->semaphore, info->value);
  return VK_SUCCESS;
}

VkResult sim_vkGetSemaphoreCounterValue(VkDevice device, VkSemaphore native, uint64_t* value) {
  (void)device;
  *value = atomic_load(((SimSemaphore*)native)->value);
  return mock_option("lost", 0) == 1 ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
}

static VkResult sim_import(VkSemaphore native, intptr_t handle, bool consumed) {
  SimSemaphore* semaphore = (SimSemaphore*)native;
  if (mock_option("timeline", 1) == 0 ||
      !mock_share_open(&semaphore->share, handle, consumed, MOCK_SEMAPHORE_BYTES)) {
    return VK_ERROR_INVALID_EXTERNAL_HANDLE;
  }
  void* shared = mock_map(handle, MOCK_SEMAPHORE_BYTES);
  if (shared == NULL) {
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  (void)mock_object_remove("semaphore", semaphore);
  mock_object_add("external semaphore", semaphore, sizeof *semaphore);
  semaphore->value = shared;
  return VK_SUCCESS;
}

VkResult sim_vkImportSemaphoreFdKHR(VkDevice device, const VkImportSemaphoreFdInfoKHR* info) {
  (void)device;
  return sim_import(info->semaphore, info->fd, true);
}

VkResult sim_vkImportSemaphoreWin32HandleKHR(VkDevice device,
                                             const VkImportSemaphoreWin32HandleInfoKHR* info) {
  (void)device;
  if (info->name != NULL) {
    mock_offend("vkImportSemaphoreWin32HandleKHR: both a handle and a name are given");
  }
  return sim_import(info->semaphore, (intptr_t)info->handle, false);
}
