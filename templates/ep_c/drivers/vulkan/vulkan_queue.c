/*
 * Submissions, which follow one another on the timeline of their stream.
 *
 * A VkQueue works in order, so what waits in it holds up everything behind it: a wait whose signal
 * is to come from another stream of the same queue would never end. In a queue that is shared there
 * is therefore only work that waits for nothing, or for work before it in the queue; the stream's
 * tasks keep the rest until then.
 */
#include <stdlib.h>

#include "vulkan_stream.h"

/* How often a call is tried whose failure nobody can be told at once. */
#define VULKAN_ATTEMPTS 3

/* Work that follows what the stream held before. */
typedef struct VulkanSubmission {
  VkCommandBuffer commands; /* Null for none. */
  VulkanPoint wait;
  VulkanPoint signal;
  uint64_t value; /* The stream's timeline, once it is done. */
} VulkanSubmission;

typedef struct VulkanSubmitTask {
  EpTask base;
  VulkanSubmission submission;
} VulkanSubmitTask;

/* Notes that the device is lost, which calls after this one need not tell. @return result */
static VkResult vulkan_noted(EpDriverDevice* device, VkResult result) {
  if (result == VK_ERROR_DEVICE_LOST) {
    atomic_store(&device->lost, true);
  }
  return result;
}

static VkResult vulkan_wait_result(EpDriverDevice* device, VulkanPoint point) {
  VkSemaphoreWaitInfo wait = {DRIVER_INIT(VkSemaphoreWaitInfo), .semaphoreCount = 1,
                              .pSemaphores = &point.semaphore, .pValues = &point.value};
  return vulkan_noted(device, device->vk.vkWaitSemaphores(device->device, &wait, UINT64_MAX));
}

bool vulkan_wait(EpDriverDevice* device, VulkanPoint point, EpError* error) {
  return driver_check(vulkan_wait_result(device, point), DRIVER_NAME_vkWaitSemaphores, error);
}

uint64_t vulkan_reached(EpDriverDevice* device, VkSemaphore timeline) {
  uint64_t value = 0;
  VkResult result =
      vulkan_noted(device, device->vk.vkGetSemaphoreCounterValue(device->device, timeline, &value));
  return atomic_load(&device->lost) ? UINT64_MAX : result == VK_SUCCESS ? value : 0;
}

VulkanQueue* vulkan_queue_for_stream(EpDriverDevice* device) {
  /* The first queue is kept for copies that a thread waits for, if there is another one. */
  VulkanQueue* queue = &device->queues[device->copies != NULL && device->queue_count > 1 ? 1 : 0];
  while (!queue->shared && queue->streams > 0) {
    ++queue;
  }
  return queue;
}

void vulkan_await(EpDriverDevice* device, VulkanPoint point) {
  while (point.semaphore != NULL && vulkan_wait_result(device, point) != VK_SUCCESS &&
         vulkan_reached(device, point.semaphore) < point.value) {
  }
}

static void vulkan_stream_hand(EpDriverStream* stream, uint64_t value) {
  if (stream->handed < value) {
    stream->handed = value;
  }
}

void vulkan_stream_advance(EpDriverStream* stream, uint64_t value) {
  const EpDriverDevice* device = stream->device;
  VkSemaphoreSignalInfo signal = {DRIVER_INIT(VkSemaphoreSignalInfo), .semaphore = stream->timeline,
                                  .value = value};
  /* The stream hangs if this fails, and trying again costs nothing. */
  for (int i = 0;
       i < VULKAN_ATTEMPTS && device->vk.vkSignalSemaphore(device->device, &signal) != VK_SUCCESS;
       ++i) {
  }
  vulkan_stream_hand(stream, value);
}

static bool vulkan_queue_submit(EpDriverStream* stream, const VulkanSubmission* submission,
                                EpError* error) {
  const VkSemaphore waits[] = {stream->timeline, submission->wait.semaphore};
  const uint64_t wait_values[] = {submission->value - 1, submission->wait.value};
  const VkPipelineStageFlags stages[] = {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                         VK_PIPELINE_STAGE_ALL_COMMANDS_BIT};
  const VulkanPoint end = {stream->timeline, submission->value};
  bool has_signal = submission->signal.semaphore != NULL;
  VulkanPoint first = has_signal ? submission->signal : end;
  VkTimelineSemaphoreSubmitInfo values[] = {
      {DRIVER_INIT(VkTimelineSemaphoreSubmitInfo),
       .waitSemaphoreValueCount = submission->wait.semaphore != NULL ? 2 : 1,
       .pWaitSemaphoreValues = wait_values, .signalSemaphoreValueCount = 1,
       .pSignalSemaphoreValues = &first.value},
      {DRIVER_INIT(VkTimelineSemaphoreSubmitInfo), .signalSemaphoreValueCount = 1,
       .pSignalSemaphoreValues = &end.value}};
  /* Signals of one batch have no order. The stream's own comes last, in a batch of its own: once it
   * is seen, the other semaphore is not in use any longer. */
  const VkSubmitInfo submits[] = {
      {DRIVER_INIT(VkSubmitInfo), .pNext = &values[0],
       .waitSemaphoreCount = values[0].waitSemaphoreValueCount, .pWaitSemaphores = waits,
       .pWaitDstStageMask = stages, .commandBufferCount = submission->commands != NULL,
       .pCommandBuffers = &submission->commands, .signalSemaphoreCount = 1,
       .pSignalSemaphores = &first.semaphore},
      {DRIVER_INIT(VkSubmitInfo), .pNext = &values[1], .signalSemaphoreCount = 1,
       .pSignalSemaphores = &end.semaphore}};
  EpDriverDevice* device = stream->device;
  VkResult result =
      device->vk.vkQueueSubmit(stream->queue->queue, has_signal ? 2 : 1, submits, NULL);
  if (!driver_check(vulkan_noted(device, result), DRIVER_NAME_vkQueueSubmit, error)) {
    return false;
  }
  vulkan_stream_hand(stream, submission->value);
  return true;
}

/* Keeps the stream going past a submission that was not made; what follows sees the error. */
static void vulkan_skip(EpDriverStream* stream, uint64_t value) {
  EpDriverDevice* device = stream->device;
  vulkan_await(device, (VulkanPoint){stream->timeline, value - 1});
  ep_mutex_lock(&device->mutex);
  vulkan_stream_advance(stream, value);
  ep_mutex_unlock(&device->mutex);
}

static void vulkan_submit_run(EpQueue* queue, EpTask* base) {
  EpDriverStream* stream = (EpDriverStream*)queue;
  VulkanSubmitTask* task = (VulkanSubmitTask*)base;
  bool good = false;
  vulkan_await(stream->device, task->submission.wait);
  ep_mutex_lock(&stream->device->mutex);
  if (stream->error.code == ORT_OK) {
    EpError error;
    for (int i = 0; i < VULKAN_ATTEMPTS && !good; ++i) {
      good = vulkan_queue_submit(stream, &task->submission, &error);
    }
    if (!good) {
      stream->error = error;
    }
  }
  ep_mutex_unlock(&stream->device->mutex);
  if (!good) {
    vulkan_skip(stream, task->submission.value);
  }
  free(task);
}

static bool vulkan_submit_later(EpDriverStream* stream, const VulkanSubmission* submission,
                                EpError* error) {
  VulkanSubmitTask* task = malloc(sizeof *task);
  if (task == NULL) {
    return ep_out_of_memory(error);
  }
  *task = (VulkanSubmitTask){.base = {.run = vulkan_submit_run}, .submission = *submission};
  if (!ep_queue_add(&stream->base, &task->base)) {
    free(task);
    return ep_fail(error, ORT_EP_FAIL, EP_NAME ": no thread is left to wait with");
  }
  return true;
}

/* Whether `point` is reached, or will be by work that is before it in the stream's shared queue. */
static bool vulkan_is_due(const EpDriverStream* stream, VulkanPoint point) {
  const EpQueue* other = stream->device->streams.first;
  while (other != NULL && ((const EpDriverStream*)other)->timeline != point.semaphore) {
    other = other->next;
  }
  const EpDriverStream* producer = (const EpDriverStream*)other;
  bool ahead =
      producer != NULL && producer->queue == stream->queue && producer->handed >= point.value;
  return point.semaphore == NULL || ahead ||
         vulkan_reached(stream->device, point.semaphore) >= point.value;
}

bool vulkan_submit(EpDriverStream* stream, VkCommandBuffer commands, VulkanPoint wait,
                   VulkanPoint signal, EpError* error) {
  if (stream->error.code != ORT_OK) {
    *error = stream->error;
    return false;
  }
  const VulkanSubmission submission = {commands, wait, signal, stream->enqueued + 1};
  bool now =
      !stream->queue->shared || (stream->handed == stream->enqueued && vulkan_is_due(stream, wait));
  bool good = now ? vulkan_queue_submit(stream, &submission, error)
                  : vulkan_submit_later(stream, &submission, error);
  stream->enqueued += good;
  return good;
}
