/*
 * Streams, from their making to the end of their last work.
 */
#include "vulkan_stream.h"

#include <stdlib.h>

bool vulkan_semaphore_create(EpDriverDevice* device, VkSemaphore* semaphore, EpError* error) {
  VkSemaphoreTypeCreateInfo timeline = {DRIVER_INIT(VkSemaphoreTypeCreateInfo),
                                        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  VkSemaphoreCreateInfo create = {DRIVER_INIT(VkSemaphoreCreateInfo), .pNext = &timeline};
  return DRIVER_TRY(&device->vk, error, vkCreateSemaphore, device->device, &create, NULL,
                    semaphore);
}

static void vulkan_recycle_until(EpDriverStream* stream, uint64_t reached) {
  EpDriverDevice* device = stream->device;
  while (stream->batches != NULL && stream->batches->value <= reached) {
    VulkanBatch* batch = stream->batches;
    stream->batches = batch->next;
    device->vk.vkFreeCommandBuffers(device->device, stream->pool, 1, &batch->commands);
    if (batch->staging != NULL) {
      vulkan_staging_put(batch->staging);
    }
    free(batch);
  }
  if (stream->batches == NULL) {
    stream->last_batch = &stream->batches;
  }
}

void vulkan_recycle(EpDriverStream* stream) {
  /* Of a lost device the timeline is past everything, but tasks may still submit. */
  uint64_t reached = vulkan_reached(stream->device, stream->timeline);
  vulkan_recycle_until(stream, reached < stream->handed ? reached : stream->handed);
}

EpDriverStream* vulkan_stream_new(EpDriverDevice* device, EpError* error) {
  EpDriverStream* stream = calloc(1, sizeof *stream);
  if (stream == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  VkCommandPoolCreateInfo create = {DRIVER_INIT(VkCommandPoolCreateInfo),
                                    .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                    .queueFamilyIndex = device->queue_family};
  bool has_pool = DRIVER_TRY(&device->vk, error, vkCreateCommandPool, device->device, &create, NULL,
                             &stream->pool);
  if (!has_pool || !vulkan_semaphore_create(device, &stream->timeline, error)) {
    if (has_pool) {
      device->vk.vkDestroyCommandPool(device->device, stream->pool, NULL);
    }
    free(stream);
    return NULL;
  }
  stream->device = device;
  stream->last_batch = &stream->batches;
  ep_error_clear(&stream->error);
  stream->queue = vulkan_queue_for_stream(device);
  ++stream->queue->streams;
  ++device->stream_count;
  ep_queue_open(&stream->base, &device->streams);
  return stream;
}

/* Done, and unknown to everyone. Called with the mutex held, or when nobody else uses the device. */
static void vulkan_stream_destroy(EpDriverStream* stream) {
  EpDriverDevice* device = stream->device;
  vulkan_recycle_until(stream, UINT64_MAX);
  device->vk.vkDestroyCommandPool(device->device, stream->pool, NULL);
  device->vk.vkDestroySemaphore(device->device, stream->timeline, NULL);
  --device->stream_count;
  free(stream);
}

static void vulkan_stream_retired(EpRetirement* retirement) {
  EpDriverStream* stream =
      (EpDriverStream*)((char*)retirement - offsetof(EpDriverStream, retirement));
  EpDriverDevice* device = stream->device;
  ep_mutex_lock(&device->mutex);
  vulkan_stream_destroy(stream);
  ep_mutex_unlock(&device->mutex);
}

static void vulkan_stream_ended(EpQueue* base) {
  EpDriverStream* stream = (EpDriverStream*)base;
  EpDriverDevice* device = stream->device;
  ep_mutex_lock(&device->mutex);
  --stream->queue->streams;
  ep_mutex_unlock(&device->mutex);
  /* Others may wait for its timeline. */
  ep_queues_retire(&device->streams, &stream->retirement, vulkan_stream_retired);
}

static uint64_t vulkan_stream_end(EpQueue* base) {
  return ((EpDriverStream*)base)->enqueued;
}

static bool vulkan_stream_passed(EpQueue* base, uint64_t point) {
  EpDriverStream* stream = (EpDriverStream*)base;
  return stream->handed >= point && vulkan_reached(stream->device, stream->timeline) >= point;
}

static void vulkan_stream_await(EpQueue* base, uint64_t point) {
  EpDriverStream* stream = (EpDriverStream*)base;
  vulkan_await(stream->device, (VulkanPoint){stream->timeline, point});
}

const EpQueueKind vulkan_streams = {.end = vulkan_stream_end,
                                    .passed = vulkan_stream_passed,
                                    .await = vulkan_stream_await,
                                    .destroy = vulkan_stream_ended};

bool vulkan_has_streams(const EpDriverDevice* device) {
  return device->stream_count > (device->copies != NULL ? 1 : 0);
}

void vulkan_copies_destroy(EpDriverDevice* device) {
  EpDriverStream* copies = device->copies;
  if (copies != NULL) {
    EpError ignored; /* It is idle, unless waiting for it has failed before. */
    (void)vulkan_wait(device, (VulkanPoint){copies->timeline, copies->enqueued}, &ignored);
    --copies->queue->streams;
    ep_queue_remove(&copies->base);
    vulkan_stream_destroy(copies);
    device->copies = NULL;
  }
}

bool ep_driver_stream_create(EpDriverDevice* device, EpDriverStream** stream, EpError* error) {
  *stream = NULL;
  if (vulkan_device_ready(device, error)) {
    ep_mutex_lock(&device->mutex);
    *stream = vulkan_stream_new(device, error);
    ep_mutex_unlock(&device->mutex);
  }
  return *stream != NULL;
}

void ep_driver_stream_release(EpDriverStream* stream) {
  ep_queue_drop(&stream->base);
}

void* ep_driver_stream_native(EpDriverStream* stream) {
  return stream;
}

EpDriverStream* ep_driver_stream_from_native(EpDriverDevice* device, void* native) {
  return (EpDriverStream*)ep_queues_find(&device->streams, native);
}

bool ep_driver_stream_flush(EpDriverStream* stream, EpError* error) {
  EpDriverDevice* device = stream->device;
  ep_mutex_lock(&device->mutex);
  VulkanPoint end = {stream->timeline, stream->enqueued};
  ep_mutex_unlock(&device->mutex);
  bool good = vulkan_wait(device, end, error);
  ep_mutex_lock(&device->mutex);
  vulkan_recycle(stream);
  if (good && stream->error.code != ORT_OK) {
    *error = stream->error;
    good = false;
    if (stream->handed == stream->enqueued) { /* Else tasks still have to see it. */
      ep_error_clear(&stream->error);
    }
  }
  ep_mutex_unlock(&device->mutex);
  return good;
}
