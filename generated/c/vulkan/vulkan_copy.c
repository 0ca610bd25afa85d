/*
 * Copies, by command buffers. Pageable memory of the host is reached through staging.
 */
#include <stdlib.h>
#include <string.h>

#include "vulkan_stream.h"

/* Which marks that an API or process outside this VkInstance owns a buffer. */
#define VULKAN_QUEUE_FAMILY_EXTERNAL (UINT32_MAX - 1)

/* Between the owner outside and this device; `acquire` is true before use, false after it. */
static VkBufferMemoryBarrier vulkan_ownership(const EpDriverDevice* device,
                                              const VulkanBuffer* buffer, bool acquire) {
  VkAccessFlags use = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  return (VkBufferMemoryBarrier){
      DRIVER_INIT(VkBufferMemoryBarrier),
      .srcAccessMask = acquire ? 0 : use,
      .dstAccessMask = acquire ? use : 0,
      .srcQueueFamilyIndex = acquire ? VULKAN_QUEUE_FAMILY_EXTERNAL : device->queue_family,
      .dstQueueFamilyIndex = acquire ? device->queue_family : VULKAN_QUEUE_FAMILY_EXTERNAL,
      .buffer = buffer->buffer,
      .size = UINT64_MAX};
}

static void vulkan_record_ownership(const EpDriverDevice* device, VkCommandBuffer commands,
                                    const VulkanBuffer* source, const VulkanBuffer* destination,
                                    bool acquire) {
  VkBufferMemoryBarrier barriers[2];
  uint32_t count = 0;
  if (source->external) {
    barriers[count++] = vulkan_ownership(device, source, acquire);
  }
  if (destination->external && destination != source) {
    barriers[count++] = vulkan_ownership(device, destination, acquire);
  }
  if (count > 0) {
    device->vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                    VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, NULL, count, barriers,
                                    0, NULL);
  }
}

static bool vulkan_record_copy(EpDriverStream* stream, VkCommandBuffer commands,
                               const VulkanBuffer* source, const VulkanBuffer* destination,
                               const VkBufferCopy* range, EpError* error) {
  const EpDriverDevice* device = stream->device;
  const DriverApi* vk = &device->vk;
  VkCommandBufferBeginInfo begin = {DRIVER_INIT(VkCommandBufferBeginInfo),
                                    .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  if (!DRIVER_TRY(vk, error, vkBeginCommandBuffer, commands, &begin)) {
    return false;
  }
  vulkan_record_ownership(device, commands, source, destination, true);
  vk->vkCmdCopyBuffer(commands, source->buffer, destination->buffer, 1, range);
  vulkan_record_ownership(device, commands, source, destination, false);
  if (destination->mapping != NULL) {
    VkMemoryBarrier to_host = {DRIVER_INIT(VkMemoryBarrier),
                               .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    vk->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                             0, 1, &to_host, 0, NULL, 0, NULL);
  }
  return DRIVER_TRY(vk, error, vkEndCommandBuffer, commands);
}

/* Enqueues a copy. The caller may leave it staging to give back when it is done. Null, with `error`
 * written, on failure. Called with the mutex held. */
static VulkanBatch* vulkan_enqueue_copy(EpDriverStream* stream, const VulkanBuffer* source,
                                        const VulkanBuffer* destination, const VkBufferCopy* range,
                                        EpError* error) {
  EpDriverDevice* device = stream->device;
  vulkan_recycle(stream);
  VulkanBatch* batch = malloc(sizeof *batch);
  if (batch == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  VkCommandBufferAllocateInfo allocate = {
      DRIVER_INIT(VkCommandBufferAllocateInfo), .commandPool = stream->pool,
      .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = 1};
  if (!DRIVER_TRY(&device->vk, error, vkAllocateCommandBuffers, device->device, &allocate,
                  &batch->commands)) {
    free(batch);
    return NULL;
  }
  const VulkanPoint none = {NULL, 0};
  if (!vulkan_record_copy(stream, batch->commands, source, destination, range, error) ||
      !vulkan_submit(stream, batch->commands, none, none, error)) {
    device->vk.vkFreeCommandBuffers(device->device, stream->pool, 1, &batch->commands);
    free(batch);
    return NULL;
  }
  batch->next = NULL;
  batch->value = stream->enqueued;
  batch->staging = NULL;
  *stream->last_batch = batch;
  stream->last_batch = &batch->next;
  return batch;
}

/* Brings what the device has written to pageable memory, which it cannot reach itself. */
typedef struct VulkanReadTask {
  EpTask base;
  VulkanPoint written;
  VulkanBuffer* staging;
  void* destination;
  size_t bytes;
} VulkanReadTask;

static void vulkan_read_run(EpQueue* queue, EpTask* base) {
  EpDriverStream* stream = (EpDriverStream*)queue;
  VulkanReadTask* task = (VulkanReadTask*)base;
  EpDriverDevice* device = stream->device;
  vulkan_await(device, task->written);
  ep_mutex_lock(&device->mutex);
  bool good = stream->error.code == ORT_OK && !atomic_load(&device->lost);
  ep_mutex_unlock(&device->mutex);
  if (good) {
    memcpy(task->destination, task->staging->mapping, task->bytes);
  }
  ep_mutex_lock(&device->mutex);
  vulkan_staging_put(task->staging);
  vulkan_stream_advance(stream, task->written.value + 1);
  ep_mutex_unlock(&device->mutex);
  free(task);
}

/* Enqueues the host's part of a read; the stream goes on when it is done. */
static bool vulkan_enqueue_read(EpDriverStream* stream, VulkanReadTask* task, EpError* error) {
  task->base.run = vulkan_read_run;
  task->written = (VulkanPoint){stream->timeline, stream->enqueued};
  if (!ep_queue_add(&stream->base, &task->base)) {
    return ep_fail(error, ORT_EP_FAIL, EP_NAME ": no thread is left to read with");
  }
  ++stream->enqueued;
  return true;
}

/* A copy as the caller asked for it, resolved to buffers. */
typedef struct VulkanCopy {
  EpCopyKind kind;
  void* destination;
  const void* source;
  size_t bytes;
  VulkanBuffer* staging; /* For the side that is the host's. */
} VulkanCopy;

/* The buffer and offset of an address of the device. Called with the mutex held. */
static const VulkanBuffer* vulkan_locate(EpDriverDevice* device, const void* address, size_t bytes,
                                         VkDeviceSize* offset, EpError* error) {
  EpRange* range = ep_range_find(device->buffers, address, bytes);
  if (range == NULL) {
    (void)ep_fail(error, ORT_EP_FAIL, EP_NAME ": no memory of %s has %zu bytes at %p", device->name,
                  bytes, address);
    return NULL;
  }
  *offset = (uintptr_t)address - (uintptr_t)range->address;
  return VULKAN_BUFFER_OF(range);
}

/* Called with the mutex held; `copy->staging` is the caller's on failure too. */
static VulkanBatch* vulkan_start_copy(EpDriverStream* stream, VulkanCopy* copy, EpError* error) {
  EpDriverDevice* device = stream->device;
  VkBufferCopy range = {.size = copy->bytes};
  if (copy->kind != EP_COPY_DEVICE_TO_DEVICE) {
    copy->staging = vulkan_staging_get(device, copy->bytes, error);
    if (copy->staging == NULL) {
      return NULL;
    }
  }
  const VulkanBuffer* source =
      copy->kind == EP_COPY_HOST_TO_DEVICE
          ? copy->staging
          : vulkan_locate(device, copy->source, copy->bytes, &range.srcOffset, error);
  const VulkanBuffer* destination =
      copy->kind == EP_COPY_DEVICE_TO_HOST
          ? copy->staging
          : vulkan_locate(device, copy->destination, copy->bytes, &range.dstOffset, error);
  if (source == NULL || destination == NULL) {
    return NULL;
  }
  if (copy->kind == EP_COPY_HOST_TO_DEVICE) {
    memcpy(copy->staging->mapping, copy->source, copy->bytes);
  }
  return vulkan_enqueue_copy(stream, source, destination, &range, error);
}

/* Enqueues the whole of it. Called with the mutex held. */
static bool vulkan_copy_on_stream(EpDriverStream* stream, VulkanCopy* copy, EpError* error) {
  VulkanReadTask* task = NULL;
  if (copy->kind == EP_COPY_DEVICE_TO_HOST) {
    task = malloc(sizeof *task);
    if (task == NULL) {
      return ep_out_of_memory(error);
    }
  }
  VulkanBatch* batch = vulkan_start_copy(stream, copy, error);
  if (batch == NULL) {
    vulkan_staging_put(copy->staging);
    free(task);
    return false;
  }
  if (task == NULL) {
    batch->staging = copy->staging;
    return true;
  }
  *task = (VulkanReadTask){
      .staging = copy->staging, .destination = copy->destination, .bytes = copy->bytes};
  if (!vulkan_enqueue_read(stream, task, error)) {
    batch->staging = copy->staging;
    free(task);
    return false;
  }
  return true;
}

static bool vulkan_copy_now(EpDriverDevice* device, VulkanCopy* copy, EpError* error) {
  EpDriverStream* stream = device->copies;
  ep_mutex_lock(&device->mutex);
  bool good = vulkan_start_copy(stream, copy, error) != NULL;
  VulkanPoint end = {stream->timeline, stream->enqueued};
  ep_mutex_unlock(&device->mutex);
  bool waited = good && vulkan_wait(device, end, error);
  if (waited && copy->kind == EP_COPY_DEVICE_TO_HOST) {
    memcpy(copy->destination, copy->staging->mapping, copy->bytes);
  }
  if (good && !waited && copy->staging != NULL) { /* The device may still be at it. */
    ep_queues_retire(&device->streams, &copy->staging->retirement, vulkan_buffer_retired);
  } else {
    ep_mutex_lock(&device->mutex);
    vulkan_staging_put(copy->staging);
    ep_mutex_unlock(&device->mutex);
  }
  return waited;
}

bool ep_driver_copy(EpDriverDevice* device, EpDriverStream* stream, EpCopyKind kind,
                    void* destination, const void* source, size_t bytes, EpError* error) {
  VulkanCopy copy = {.kind = kind, .destination = destination, .source = source, .bytes = bytes};
  if (!vulkan_device_ready(device, error) || destination == source) {
    return device->device != NULL;
  }
  if (stream == NULL) {
    return vulkan_copy_now(device, &copy, error);
  }
  ep_mutex_lock(&device->mutex);
  bool good = vulkan_copy_on_stream(stream, &copy, error);
  ep_mutex_unlock(&device->mutex);
  return good;
}
