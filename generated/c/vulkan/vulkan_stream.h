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
  VulkanBuffer* staging; /**< Null when it needs none, or when a job gives it back. */
} VulkanBatch;

/** What the stream's worker does once the timeline has reached `value`. */
typedef struct VulkanJob {
  struct VulkanJob* next;
  uint64_t value;
  void (*run)(EpDriverStream* stream, struct VulkanJob* job);
} VulkanJob;

/** Guarded by the device's mutex. */
struct EpDriverStream {
  EpDriverDevice* device;
  EpDriverStream* next;
  VulkanQueue* queue;
  VkCommandPool pool;
  VkSemaphore timeline;
  uint64_t submitted; /**< The timeline's value when everything enqueued is done. */
  size_t references;  /* The owner's, those of events, and the worker's. */
  VulkanBatch* batches;
  VulkanBatch** last_batch;
  VulkanJob* jobs;
  VulkanJob** last_job;
  VulkanJob farewell; /**< The last job of a stream that is released with work. */
  bool working;
};
/** A timeline and a value of it. */
typedef struct VulkanPoint {
  VkSemaphore semaphore;
  uint64_t value;
} VulkanPoint;
/** A timeline semaphore at 0. */
bool vulkan_semaphore_create(EpDriverDevice* device, VkSemaphore* semaphore, EpError* error);
/** Blocks until `point` is reached. */
bool vulkan_wait(EpDriverDevice* device, VulkanPoint point, EpError* error);
/** How far the semaphore has come: UINT64_MAX if the device is lost, 0 if it cannot be told. */
uint64_t vulkan_reached(const EpDriverDevice* device, VkSemaphore timeline);

/** Takes back what finished batches used. Called with the mutex held. */
void vulkan_recycle(EpDriverStream* stream);
/** The point where everything enqueued is done. Takes a reference. Called with the mutex held. */
VulkanPoint vulkan_stream_end(EpDriverStream* stream);
/** Drops a reference; the last one retires the stream. */
void vulkan_stream_drop(EpDriverStream* stream);
/** Hands `job` to the stream's worker. False when the system refuses a thread. Called with the mutex
 *  held. */
bool vulkan_stream_add_job(EpDriverStream* stream, VulkanJob* job);
/** Submits `commands` (null for none) after everything the stream holds and after `wait`, and with a
 *  signal of `signal`; a point without a semaphore is none. Called with the mutex held. */
bool vulkan_submit(EpDriverStream* stream, VkCommandBuffer commands, VulkanPoint wait,
                   VulkanPoint signal, EpError* error);

#endif /* VULKAN_STREAM_H_ */
