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
      .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
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
  VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                    .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  VkResult result = vk->vkBeginCommandBuffer(commands, &begin);
  if (result != VK_SUCCESS) {
    return vulkan_failed(error, "vkBeginCommandBuffer", result);
  }
  vulkan_record_ownership(device, commands, source, destination, true);
  vk->vkCmdCopyBuffer(commands, source->buffer, destination->buffer, 1, range);
  vulkan_record_ownership(device, commands, source, destination, false);
  if (destination->mapping != NULL) {
    VkMemoryBarrier to_host = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    vk->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                             0, 1, &to_host, 0, NULL, 0, NULL);
  }
  result = vk->vkEndCommandBuffer(commands);
  return result == VK_SUCCESS || vulkan_failed(error, "vkEndCommandBuffer", result);
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
    (void)vulkan_out_of_memory(error);
    return NULL;
  }
  VkCommandBufferAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                          .commandPool = stream->pool,
                                          .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                          .commandBufferCount = 1};
  VkResult result =
      device->vk.vkAllocateCommandBuffers(device->device, &allocate, &batch->commands);
  if (result != VK_SUCCESS) {
    free(batch);
    (void)vulkan_failed(error, "vkAllocateCommandBuffers", result);
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
typedef struct VulkanReadJob {
  VulkanJob base;
  VulkanBuffer* staging;
  void* destination;
  size_t bytes;
} VulkanReadJob;

static void vulkan_read_run(EpDriverStream* stream, VulkanJob* base) {
  VulkanReadJob* job = (VulkanReadJob*)base;
  EpDriverDevice* device = stream->device;
  ep_mutex_lock(&device->mutex);
  bool written = stream->error.code == ORT_OK && !atomic_load(&device->lost);
  ep_mutex_unlock(&device->mutex);
  if (written) {
    memcpy(job->destination, job->staging->mapping, job->bytes);
  }
  ep_mutex_lock(&device->mutex);
  vulkan_staging_put(device, job->staging);
  vulkan_stream_advance(stream, base->after.value + 1);
  ep_mutex_unlock(&device->mutex);
  free(job);
}

/* Enqueues the host's part of a read; the stream goes on when it is done. */
static bool vulkan_enqueue_read(EpDriverStream* stream, VulkanReadJob* job, EpError* error) {
  job->base.run = vulkan_read_run;
  job->base.after = (VulkanPoint){stream->timeline, stream->enqueued};
  if (!vulkan_stream_add_job(stream, &job->base)) {
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
  const VulkanBuffer* buffer = vulkan_buffer_at(device, address, bytes);
  if (buffer == NULL) {
    (void)ep_fail(error, ORT_EP_FAIL, EP_NAME ": no memory of %s has %zu bytes at %p", device->name,
                  bytes, address);
    return NULL;
  }
  *offset = (uintptr_t)address - (uintptr_t)buffer->address;
  return buffer;
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
  VulkanReadJob* job = NULL;
  if (copy->kind == EP_COPY_DEVICE_TO_HOST) {
    job = malloc(sizeof *job);
    if (job == NULL) {
      return vulkan_out_of_memory(error);
    }
  }
  VulkanBatch* batch = vulkan_start_copy(stream, copy, error);
  if (batch == NULL) {
    if (copy->staging != NULL) {
      vulkan_staging_put(stream->device, copy->staging);
    }
    free(job);
    return false;
  }
  if (job == NULL) {
    batch->staging = copy->staging;
    return true;
  }
  *job = (VulkanReadJob){
      .staging = copy->staging, .destination = copy->destination, .bytes = copy->bytes};
  if (!vulkan_enqueue_read(stream, job, error)) {
    batch->staging = copy->staging;
    free(job);
    return false;
  }
  return true;
}

/* Null is ignored. */
static void vulkan_staging_done(EpDriverDevice* device, void* staging) {
  if (staging != NULL) {
    ep_mutex_lock(&device->mutex);
    vulkan_staging_put(device, staging);
    ep_mutex_unlock(&device->mutex);
  }
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
  if (good && !waited) { /* The device may still be at it. */
    vulkan_retire(device, vulkan_staging_done, copy->staging);
  } else {
    vulkan_staging_done(device, copy->staging);
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
