/*
 * Submissions, which follow one another on the timeline of their stream; and each stream's worker,
 * which waits for what callers must not wait for.
 *
 * A VkQueue works in order, so what waits in it holds up everything behind it: a wait whose signal
 * is to come from another stream of the same queue would never end. In a queue that is shared there
 * is therefore only work that waits for nothing, or for work before it in the queue; the stream's
 * worker keeps the rest until then.
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

typedef struct VulkanSubmitJob {
  VulkanJob base;
  VulkanSubmission submission;
} VulkanSubmitJob;

/* Notes that the device is lost, which calls after this one need not tell. @return result */
static VkResult vulkan_noted(EpDriverDevice* device, VkResult result) {
  if (result == VK_ERROR_DEVICE_LOST) {
    atomic_store(&device->lost, true);
  }
  return result;
}

static VkResult vulkan_wait_result(EpDriverDevice* device, VulkanPoint point) {
  VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                              .semaphoreCount = 1,
                              .pSemaphores = &point.semaphore,
                              .pValues = &point.value};
  return vulkan_noted(device, device->vk.vkWaitSemaphores(device->device, &wait, UINT64_MAX));
}

bool vulkan_wait(EpDriverDevice* device, VulkanPoint point, EpError* error) {
  VkResult result = vulkan_wait_result(device, point);
  return result == VK_SUCCESS || vulkan_failed(error, "vkWaitSemaphores", result);
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

/* Waits for `point` however often the call fails, unless the device is lost. */
static void vulkan_await(EpDriverDevice* device, VulkanPoint point) {
  while (point.semaphore != NULL && vulkan_wait_result(device, point) != VK_SUCCESS &&
         vulkan_reached(device, point.semaphore) < point.value) {
  }
}

static void vulkan_work(void* argument) {
  EpDriverStream* stream = argument;
  EpDriverDevice* device = stream->device;
  EpDriver* driver = device->driver;
  ep_mutex_lock(&device->mutex);
  while (stream->jobs != NULL) {
    VulkanJob* job = stream->jobs;
    ep_mutex_unlock(&device->mutex);
    vulkan_await(device, job->after);
    ep_mutex_lock(&device->mutex);
    stream->jobs = job->next;
    if (stream->jobs == NULL) {
      stream->last_job = &stream->jobs;
    }
    ep_mutex_unlock(&device->mutex);
    job->run(stream, job);
    ep_mutex_lock(&device->mutex);
  }
  stream->working = false;
  ep_mutex_unlock(&device->mutex);
  vulkan_stream_drop(stream);
  ep_driver_close(driver);
}

bool vulkan_stream_add_job(EpDriverStream* stream, VulkanJob* job) {
  if (!stream->working) {
    if (!ep_thread_start(vulkan_work, stream)) {
      return false;
    }
    stream->working = true;
    ++stream->references;
    vulkan_driver_retain(stream->device->driver);
  }
  job->next = NULL;
  *stream->last_job = job;
  stream->last_job = &job->next;
  return true;
}

static void vulkan_stream_hand(EpDriverStream* stream, uint64_t value) {
  if (stream->handed < value) {
    stream->handed = value;
  }
}

void vulkan_stream_advance(EpDriverStream* stream, uint64_t value) {
  const EpDriverDevice* device = stream->device;
  VkSemaphoreSignalInfo signal = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                  .semaphore = stream->timeline,
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
      {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
       .waitSemaphoreValueCount = submission->wait.semaphore != NULL ? 2 : 1,
       .pWaitSemaphoreValues = wait_values,
       .signalSemaphoreValueCount = 1,
       .pSignalSemaphoreValues = &first.value},
      {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
       .signalSemaphoreValueCount = 1,
       .pSignalSemaphoreValues = &end.value}};
  /* Signals of one batch have no order. The stream's own comes last, in a batch of its own: once it
   * is seen, the other semaphore is not in use any longer. */
  const VkSubmitInfo submits[] = {{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                   .pNext = &values[0],
                                   .waitSemaphoreCount = values[0].waitSemaphoreValueCount,
                                   .pWaitSemaphores = waits,
                                   .pWaitDstStageMask = stages,
                                   .commandBufferCount = submission->commands != NULL,
                                   .pCommandBuffers = &submission->commands,
                                   .signalSemaphoreCount = 1,
                                   .pSignalSemaphores = &first.semaphore},
                                  {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                   .pNext = &values[1],
                                   .signalSemaphoreCount = 1,
                                   .pSignalSemaphores = &end.semaphore}};
  EpDriverDevice* device = stream->device;
  VkResult result = vulkan_noted(
      device, device->vk.vkQueueSubmit(stream->queue->queue, has_signal ? 2 : 1, submits, NULL));
  if (result != VK_SUCCESS) {
    return vulkan_failed(error, "vkQueueSubmit", result);
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

static void vulkan_submit_run(EpDriverStream* stream, VulkanJob* base) {
  VulkanSubmitJob* job = (VulkanSubmitJob*)base;
  bool good = false;
  ep_mutex_lock(&stream->device->mutex);
  if (stream->error.code == ORT_OK) {
    EpError error;
    for (int i = 0; i < VULKAN_ATTEMPTS && !good; ++i) {
      good = vulkan_queue_submit(stream, &job->submission, &error);
    }
    if (!good) {
      stream->error = error;
    }
  }
  ep_mutex_unlock(&stream->device->mutex);
  if (!good) {
    vulkan_skip(stream, job->submission.value);
  }
  free(job);
}

static bool vulkan_submit_later(EpDriverStream* stream, const VulkanSubmission* submission,
                                EpError* error) {
  VulkanSubmitJob* job = malloc(sizeof *job);
  if (job == NULL) {
    return vulkan_out_of_memory(error);
  }
  *job = (VulkanSubmitJob){.base = {.after = submission->wait, .run = vulkan_submit_run},
                           .submission = *submission};
  if (!vulkan_stream_add_job(stream, &job->base)) {
    free(job);
    return ep_fail(error, ORT_EP_FAIL, EP_NAME ": no thread is left to wait with");
  }
  return true;
}

/* Whether `point` is reached, or will be by work that is before it in the stream's shared queue. */
static bool vulkan_is_due(const EpDriverStream* stream, VulkanPoint point) {
  const EpDriverStream* producer = stream->device->streams;
  while (producer != NULL && producer->timeline != point.semaphore) {
    producer = producer->next;
  }
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
