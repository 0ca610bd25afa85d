/*
 * Streams from the inside: what copies, events and semaphores build on.
 */
#ifndef VULKAN_STREAM_H_
#define VULKAN_STREAM_H_

#include "vulkan_device.h"

/** A command buffer that the device may still execute. */
typedef struct VulkanBatch {
  struct VulkanBatch* next;
  uint64_t value; /**< Of the timeline, when it is done. */
  VkCommandBuffer commands;
  VulkanBuffer* staging; /**< Null when it needs none, or when a task gives it back. */
} VulkanBatch;

/** A timeline and a value of it; without a semaphore it is no point. */
typedef struct VulkanPoint {
  VkSemaphore semaphore;
  uint64_t value;
} VulkanPoint;

/** A queue whose points are values of its timeline. Its tasks wait for what callers must not wait
 *  for. Guarded by the device's mutex. */
struct EpDriverStream {
  EpQueue base;
  EpRetirement retirement;
  EpDriverDevice* device;
  VulkanQueue* queue;
  VkCommandPool pool;
  VkSemaphore timeline;
  uint64_t enqueued; /**< The timeline's value when everything enqueued is done. */
  uint64_t handed;   /**< Up to here no task has to do anything for the timeline to go on. */
  EpError error;     /**< Why a task could not submit; cleared by the flush that reports it. */
  VulkanBatch* batches;
  VulkanBatch** last_batch;
};

/** The queue for a new stream. Called with the mutex held. */
VulkanQueue* vulkan_queue_for_stream(EpDriverDevice* device);
/** A timeline semaphore at 0. */
bool vulkan_semaphore_create(EpDriverDevice* device, VkSemaphore* semaphore, EpError* error);
/** Blocks until `point` is reached. */
bool vulkan_wait(EpDriverDevice* device, VulkanPoint point, EpError* error);
/** The same however often the call fails, unless the device is lost. */
void vulkan_await(EpDriverDevice* device, VulkanPoint point);
/** How far the semaphore has come: UINT64_MAX if the device is lost, 0 if it cannot be told. */
uint64_t vulkan_reached(EpDriverDevice* device, VkSemaphore timeline);

/** Takes back what finished batches used. Called with the mutex held. */
void vulkan_recycle(EpDriverStream* stream);
/** Raises the stream's timeline to `value` for a task. Called with the mutex held. */
void vulkan_stream_advance(EpDriverStream* stream, uint64_t value);
/** Enqueues `commands` (null for none) after everything the stream holds and after `wait`, and a
 *  signal of `signal`. On a queue that is shared, a task submits it when it waits for nothing any
 *  more. Called with the mutex held. */
bool vulkan_submit(EpDriverStream* stream, VkCommandBuffer commands, VulkanPoint wait,
                   VulkanPoint signal, EpError* error);

#endif /* VULKAN_STREAM_H_ */
