/*
 * Streams: submissions that follow one another on a timeline of the stream's own. Copies, events
 * and external semaphores are submissions; only a worker, never the caller, waits for them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "vulkan_device.h"

/* Which marks that an API or process outside this VkInstance owns a buffer. */
#define VULKAN_QUEUE_FAMILY_EXTERNAL (UINT32_MAX - 1)

/* A command buffer that the device may still execute. */
typedef struct VulkanBatch {
  struct VulkanBatch* next;
  uint64_t value; /* Of the timeline, when it is done. */
  VkCommandBuffer commands;
  VulkanBuffer* staging; /* Null when it needs none, or when a job gives it back. */
} VulkanBatch;

/* What the stream's worker does once the timeline has reached `value`. */
typedef struct VulkanJob {
  struct VulkanJob* next;
  uint64_t value;
  void (*run)(EpDriverStream* stream, struct VulkanJob* job);
} VulkanJob;

/* Guarded by the device's mutex. */
struct EpDriverStream {
  EpDriverDevice* device;
  EpDriverStream* next;
  VulkanQueue* queue;
  VkCommandPool pool;
  VkSemaphore timeline;
  uint64_t submitted; /* The timeline's value when everything enqueued is done. */
  size_t references;  /* The owner's, those of events, and the worker's. */
  VulkanBatch* batches;
  VulkanBatch** last_batch;
  VulkanJob* jobs;
  VulkanJob** last_job;
  bool working;
};

struct EpDriverEvent {
  EpDriverDevice* device;
  EpDriverStream* producer; /* Null before the first record. */
  uint64_t value;
};

struct EpDriverSemaphore {
  EpDriverDevice* device;
  VkSemaphore semaphore;
};

/* A timeline and a value of it. */
typedef struct VulkanPoint {
  VkSemaphore semaphore;
  uint64_t value;
} VulkanPoint;

static bool vulkan_semaphore_create(EpDriverDevice* device, VkSemaphore* semaphore,
                                    EpError* error) {
  VkSemaphoreTypeCreateInfo timeline = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  VkSemaphoreCreateInfo create = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                  .pNext = &timeline};
  VkResult result = device->vk.vkCreateSemaphore(device->device, &create, NULL, semaphore);
  if (result != VK_SUCCESS) {
    *semaphore = NULL;
    return vulkan_failed(error, "vkCreateSemaphore", result);
  }
  return true;
}

static bool vulkan_wait(EpDriverDevice* device, VulkanPoint point, EpError* error) {
  VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                              .semaphoreCount = 1,
                              .pSemaphores = &point.semaphore,
                              .pValues = &point.value};
  VkResult result = device->vk.vkWaitSemaphores(device->device, &wait, UINT64_MAX);
  return result == VK_SUCCESS || vulkan_failed(error, "vkWaitSemaphores", result);
}

/* How far the device has come; everything, if it is lost. */
static uint64_t vulkan_reached(const EpDriverDevice* device, VkSemaphore timeline) {
  uint64_t value = 0;
  VkResult result = device->vk.vkGetSemaphoreCounterValue(device->device, timeline, &value);
  return result == VK_SUCCESS ? value : UINT64_MAX;
}

static bool vulkan_is_idle(const EpDriverStream* stream) {
  return vulkan_reached(stream->device, stream->timeline) >= stream->submitted;
}

/* Takes back what finished batches used. */
static void vulkan_recycle(EpDriverStream* stream) {
  EpDriverDevice* device = stream->device;
  uint64_t reached = vulkan_reached(device, stream->timeline);
  while (stream->batches != NULL && stream->batches->value <= reached) {
    VulkanBatch* batch = stream->batches;
    stream->batches = batch->next;
    device->vk.vkFreeCommandBuffers(device->device, stream->pool, 1, &batch->commands);
    if (batch->staging != NULL) {
      vulkan_staging_put(device, batch->staging);
    }
    free(batch);
  }
  if (stream->batches == NULL) {
    stream->last_batch = &stream->batches;
  }
}

static VulkanQueue* vulkan_least_used_queue(EpDriverDevice* device) {
  /* The first queue is kept for copies that a thread waits for, if there is another one. */
  uint32_t first = device->copies != NULL && device->queue_count > 1 ? 1 : 0;
  VulkanQueue* least = &device->queues[first];
  for (uint32_t i = first + 1; i < device->queue_count; ++i) {
    if (device->queues[i].streams < least->streams) {
      least = &device->queues[i];
    }
  }
  return least;
}

EpDriverStream* vulkan_stream_new(EpDriverDevice* device, EpError* error) {
  EpDriverStream* stream = calloc(1, sizeof *stream);
  if (stream == NULL) {
    (void)vulkan_out_of_memory(error);
    return NULL;
  }
  VkCommandPoolCreateInfo create = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                    .queueFamilyIndex = device->queue_family};
  VkResult result = device->vk.vkCreateCommandPool(device->device, &create, NULL, &stream->pool);
  bool has_pool = result == VK_SUCCESS || vulkan_failed(error, "vkCreateCommandPool", result);
  if (!has_pool || !vulkan_semaphore_create(device, &stream->timeline, error)) {
    if (has_pool) {
      device->vk.vkDestroyCommandPool(device->device, stream->pool, NULL);
    }
    free(stream);
    return NULL;
  }
  stream->device = device;
  stream->references = 1;
  stream->last_batch = &stream->batches;
  stream->last_job = &stream->jobs;
  stream->queue = vulkan_least_used_queue(device);
  ++stream->queue->streams;
  stream->next = device->streams;
  device->streams = stream;
  return stream;
}

/* Idle, and unknown to everyone. Called with the mutex held, or when nobody else uses the device. */
static void vulkan_stream_destroy(EpDriverDevice* device, EpDriverStream* stream) {
  vulkan_recycle(stream);
  device->vk.vkDestroyCommandPool(device->device, stream->pool, NULL);
  device->vk.vkDestroySemaphore(device->device, stream->timeline, NULL);
  free(stream);
}

/* Called with the mutex held. True when that was the last reference: the caller then retires the
 * stream, because others may wait for its timeline. */
static bool vulkan_stream_unreference(EpDriverStream* stream) {
  if (--stream->references > 0) {
    return false;
  }
  EpDriverStream** link = &stream->device->streams;
  while (*link != stream) {
    link = &(*link)->next;
  }
  *link = stream->next;
  --stream->queue->streams;
  return true;
}

static void vulkan_stream_done(EpDriverDevice* device, void* object) {
  ep_mutex_lock(&device->mutex);
  vulkan_stream_destroy(device, object);
  ep_mutex_unlock(&device->mutex);
}

static void vulkan_stream_drop(EpDriverStream* stream) {
  EpDriverDevice* device = stream->device;
  ep_mutex_lock(&device->mutex);
  bool last = vulkan_stream_unreference(stream);
  ep_mutex_unlock(&device->mutex);
  if (last) {
    vulkan_retire(device, vulkan_stream_done, stream);
  }
}

bool vulkan_has_streams(const EpDriverDevice* device) {
  const EpDriverStream* first = device->streams;
  return first != NULL && (first != device->copies || first->next != NULL);
}

void vulkan_copies_destroy(EpDriverDevice* device) {
  EpDriverStream* copies = device->copies;
  if (copies != NULL && vulkan_stream_unreference(copies)) {
    vulkan_stream_destroy(device, copies);
  }
  device->copies = NULL;
}

static void vulkan_work(void* argument) {
  EpDriverStream* stream = argument;
  EpDriverDevice* device = stream->device;
  EpDriver* driver = device->driver;
  ep_mutex_lock(&device->mutex);
  while (stream->jobs != NULL) {
    VulkanJob* job = stream->jobs;
    ep_mutex_unlock(&device->mutex);
    EpError lost; /* A lost device has nothing pending either. */
    (void)vulkan_wait(device, (VulkanPoint){stream->timeline, job->value}, &lost);
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

/* Called with the mutex held. False when the system refuses a thread. */
static bool vulkan_stream_add_job(EpDriverStream* stream, VulkanJob* job) {
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

/* Takes a reference; called with the mutex held. */
static VulkanPoint vulkan_stream_end(EpDriverStream* stream) {
  ++stream->references;
  return (VulkanPoint){stream->timeline, stream->submitted};
}

bool ep_driver_stream_flush(EpDriverStream* stream, EpError* error) {
  EpDriverDevice* device = stream->device;
  ep_mutex_lock(&device->mutex);
  VulkanPoint end = vulkan_stream_end(stream);
  ep_mutex_unlock(&device->mutex);
  bool good = vulkan_wait(device, end, error);
  ep_mutex_lock(&device->mutex);
  vulkan_recycle(stream);
  ep_mutex_unlock(&device->mutex);
  vulkan_stream_drop(stream);
  return good;
}

/* Blocks until all streams have done what they hold now. */
static bool vulkan_device_flush(EpDriverDevice* device, EpError* error) {
  size_t count = 0;
  ep_mutex_lock(&device->mutex);
  for (EpDriverStream* stream = device->streams; stream != NULL; stream = stream->next) {
    ++count;
  }
  EpDriverStream** held = malloc((count + 1) * sizeof *held);
  count = 0;
  for (EpDriverStream* stream = device->streams; held != NULL && stream != NULL;
       stream = stream->next) {
    ++stream->references;
    held[count++] = stream;
  }
  ep_mutex_unlock(&device->mutex);
  bool good = held != NULL || vulkan_out_of_memory(error);
  for (size_t i = 0; i < count; ++i) {
    EpError first;
    ep_error_clear(&first);
    if (!ep_driver_stream_flush(held[i], &first) && good) {
      *error = first;
      good = false;
    }
    vulkan_stream_drop(held[i]);
  }
  free(held);
  return good;
}

/* An object that streams still use: counted by their jobs and by who retires it. */
typedef struct VulkanRetirement {
  size_t references;
  void (*done)(EpDriverDevice* device, void* object);
  void* object;
} VulkanRetirement;

typedef struct VulkanRetireJob {
  VulkanJob base;
  VulkanRetirement* retirement;
} VulkanRetireJob;

static void vulkan_retirement_drop(EpDriverDevice* device, VulkanRetirement* retirement) {
  ep_mutex_lock(&device->mutex);
  bool last = --retirement->references == 0;
  ep_mutex_unlock(&device->mutex);
  if (last) {
    retirement->done(device, retirement->object);
    free(retirement);
  }
}

static void vulkan_retire_run(EpDriverStream* stream, VulkanJob* base) {
  VulkanRetireJob* job = (VulkanRetireJob*)base;
  vulkan_retirement_drop(stream->device, job->retirement);
  free(job);
}

static EpDriverStream* vulkan_busy_stream(EpDriverStream* stream) {
  while (stream != NULL && vulkan_is_idle(stream)) {
    stream = stream->next;
  }
  return stream;
}

/* A job on `stream` for the retirement; false when memory or threads are short. */
static bool vulkan_retire_after(EpDriverStream* stream, VulkanRetirement* retirement) {
  VulkanRetireJob* job = malloc(sizeof *job);
  if (job == NULL) {
    return false;
  }
  job->base.run = vulkan_retire_run;
  job->base.value = stream->submitted;
  job->retirement = retirement;
  if (!vulkan_stream_add_job(stream, &job->base)) {
    free(job);
    return false;
  }
  ++retirement->references;
  return true;
}

void vulkan_retire(EpDriverDevice* device, void (*done)(EpDriverDevice* device, void* object),
                   void* object) {
  VulkanRetirement* retirement = NULL;
  bool followed = true;
  ep_mutex_lock(&device->mutex);
  EpDriverStream* stream = vulkan_busy_stream(device->streams);
  if (stream != NULL) {
    retirement = malloc(sizeof *retirement);
    followed = retirement != NULL;
    if (followed) {
      *retirement = (VulkanRetirement){1, done, object};
    }
  }
  for (; followed && stream != NULL; stream = vulkan_busy_stream(stream->next)) {
    followed = vulkan_retire_after(stream, retirement);
  }
  ep_mutex_unlock(&device->mutex);
  if (!followed) {
    EpError ignored; /* The last resort blocks. */
    (void)vulkan_device_flush(device, &ignored);
  }
  if (retirement != NULL) {
    vulkan_retirement_drop(device, retirement);
  } else {
    done(device, object);
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
  vulkan_stream_drop(stream);
}

void* ep_driver_stream_native(EpDriverStream* stream) {
  return stream;
}

EpDriverStream* ep_driver_stream_from_native(EpDriverDevice* device, void* native) {
  ep_mutex_lock(&device->mutex);
  EpDriverStream* stream = device->streams;
  while (stream != NULL && stream != native) {
    stream = stream->next;
  }
  ep_mutex_unlock(&device->mutex);
  return stream;
}

/* Submits `commands` (null for none) after everything the stream holds and after `wait`, and with a
 * signal of `signal`; a point without a semaphore is none. Called with the mutex held. */
static bool vulkan_submit(EpDriverStream* stream, VkCommandBuffer commands, VulkanPoint wait,
                          VulkanPoint signal, EpError* error) {
  VkSemaphore waits[] = {stream->timeline, wait.semaphore};
  uint64_t wait_values[] = {stream->submitted, wait.value};
  VkPipelineStageFlags stages[] = {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                   VK_PIPELINE_STAGE_ALL_COMMANDS_BIT};
  VkSemaphore signals[] = {stream->timeline, signal.semaphore};
  uint64_t signal_values[] = {stream->submitted + 1, signal.value};
  VkTimelineSemaphoreSubmitInfo values = {
      .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
      .waitSemaphoreValueCount = wait.semaphore != NULL ? 2 : 1,
      .pWaitSemaphoreValues = wait_values,
      .signalSemaphoreValueCount = signal.semaphore != NULL ? 2 : 1,
      .pSignalSemaphoreValues = signal_values};
  VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .pNext = &values,
                         .waitSemaphoreCount = values.waitSemaphoreValueCount,
                         .pWaitSemaphores = waits,
                         .pWaitDstStageMask = stages,
                         .commandBufferCount = commands != NULL,
                         .pCommandBuffers = &commands,
                         .signalSemaphoreCount = values.signalSemaphoreValueCount,
                         .pSignalSemaphores = signals};
  VkResult result = stream->device->vk.vkQueueSubmit(stream->queue->queue, 1, &submit, NULL);
  if (result != VK_SUCCESS) {
    return vulkan_failed(error, "vkQueueSubmit", result);
  }
  ++stream->submitted;
  return true;
}

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
  batch->value = stream->submitted;
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
  memcpy(job->destination, job->staging->mapping, job->bytes);
  VkSemaphoreSignalInfo signal = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                  .semaphore = stream->timeline,
                                  .value = base->value + 1};
  ep_mutex_lock(&device->mutex);
  vulkan_staging_put(device, job->staging);
  (void)device->vk.vkSignalSemaphore(device->device, &signal);
  ep_mutex_unlock(&device->mutex);
  free(job);
}

/* Enqueues the host's part of a read; the stream goes on when it is done. */
static bool vulkan_enqueue_read(EpDriverStream* stream, VulkanReadJob* job, EpError* error) {
  job->base.run = vulkan_read_run;
  job->base.value = stream->submitted;
  if (!vulkan_stream_add_job(stream, &job->base)) {
    return ep_fail(error, ORT_EP_FAIL, EP_NAME ": no thread is left to read with");
  }
  ++stream->submitted;
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

static bool vulkan_copy_now(EpDriverDevice* device, VulkanCopy* copy, EpError* error) {
  EpDriverStream* stream = device->copies;
  ep_mutex_lock(&device->mutex);
  bool good = vulkan_start_copy(stream, copy, error) != NULL;
  VulkanPoint end = {stream->timeline, stream->submitted};
  ep_mutex_unlock(&device->mutex);
  good = good && vulkan_wait(device, end, error);
  if (good && copy->kind == EP_COPY_DEVICE_TO_HOST) {
    memcpy(copy->destination, copy->staging->mapping, copy->bytes);
  }
  ep_mutex_lock(&device->mutex);
  if (copy->staging != NULL) {
    vulkan_staging_put(device, copy->staging);
  }
  vulkan_recycle(stream);
  ep_mutex_unlock(&device->mutex);
  return good;
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

bool ep_driver_event_create(EpDriverDevice* device, EpDriverEvent** out, EpError* error) {
  EpDriverEvent* event = calloc(1, sizeof *event);
  *out = event;
  if (event == NULL) {
    return vulkan_out_of_memory(error);
  }
  event->device = device;
  return true;
}

void ep_driver_event_release(EpDriverEvent* event) {
  if (event->producer != NULL) {
    vulkan_stream_drop(event->producer);
  }
  free(event);
}

bool ep_driver_event_record(EpDriverEvent* event, EpDriverStream* stream, EpError* error) {
  (void)error;
  ep_mutex_lock(&event->device->mutex);
  EpDriverStream* before = event->producer;
  event->value = vulkan_stream_end(stream).value;
  event->producer = stream;
  ep_mutex_unlock(&event->device->mutex);
  if (before != NULL) {
    vulkan_stream_drop(before);
  }
  return true;
}

bool ep_driver_event_wait(EpDriverEvent* event, EpDriverStream* stream, EpError* error) {
  ep_mutex_lock(&event->device->mutex);
  bool good = true;
  if (event->producer != NULL && event->producer != stream) {
    good = vulkan_submit(stream, NULL, (VulkanPoint){event->producer->timeline, event->value},
                         (VulkanPoint){NULL, 0}, error);
  }
  ep_mutex_unlock(&event->device->mutex);
  return good;
}

bool ep_driver_event_wait_on_host(EpDriverEvent* event, EpError* error) {
  EpDriverDevice* device = event->device;
  ep_mutex_lock(&device->mutex);
  EpDriverStream* producer = event->producer;
  VulkanPoint point = {NULL, event->value};
  if (producer != NULL) {
    point.semaphore = vulkan_stream_end(producer).semaphore;
  }
  ep_mutex_unlock(&device->mutex);
  if (producer == NULL) {
    return true;
  }
  bool good = vulkan_wait(device, point, error);
  vulkan_stream_drop(producer);
  return good;
}

static bool vulkan_import_native(EpDriverDevice* device, const EpHandleType* type,
                                 EpNativeHandle native, VkSemaphore semaphore, EpError* error) {
  if (type->kind == EP_NATIVE_FD) {
    VkImportSemaphoreFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR,
                                       .semaphore = semaphore,
                                       .handleType = type->driver_type,
                                       .fd = native.fd};
    VkResult result = device->vk.vkImportSemaphoreFdKHR(device->device, &info);
    return result == VK_SUCCESS || vulkan_failed(error, "vkImportSemaphoreFdKHR", result);
  }
  VkImportSemaphoreWin32HandleInfoKHR info = {
      .sType = VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_WIN32_HANDLE_INFO_KHR,
      .semaphore = semaphore,
      .handleType = type->driver_type,
      .handle = native.handle};
  VkResult result = device->vk.vkImportSemaphoreWin32HandleKHR(device->device, &info);
  return result == VK_SUCCESS || vulkan_failed(error, "vkImportSemaphoreWin32HandleKHR", result);
}

bool ep_driver_import_semaphore(EpDriverDevice* device, const EpHandleType* type,
                                EpNativeHandle native, EpDriverSemaphore** out, EpError* error) {
  *out = NULL;
  if (!vulkan_device_ready(device, error)) {
    return false;
  }
  EpDriverSemaphore* semaphore = malloc(sizeof *semaphore);
  if (semaphore == NULL) {
    return vulkan_out_of_memory(error);
  }
  semaphore->device = device;
  if (!vulkan_semaphore_create(device, &semaphore->semaphore, error)) {
    free(semaphore);
    return false;
  }
  if (!vulkan_import_native(device, type, native, semaphore->semaphore, error)) {
    device->vk.vkDestroySemaphore(device->device, semaphore->semaphore, NULL);
    free(semaphore);
    return false;
  }
  ep_mutex_lock(&device->mutex);
  ++device->semaphores;
  ep_mutex_unlock(&device->mutex);
  *out = semaphore;
  return true;
}

static void vulkan_semaphore_destroy(EpDriverDevice* device, void* object) {
  EpDriverSemaphore* semaphore = object;
  device->vk.vkDestroySemaphore(device->device, semaphore->semaphore, NULL);
  ep_mutex_lock(&device->mutex);
  --device->semaphores;
  ep_mutex_unlock(&device->mutex);
  free(semaphore);
}

void ep_driver_semaphore_release(EpDriverSemaphore* semaphore) {
  vulkan_retire(semaphore->device, vulkan_semaphore_destroy, semaphore);
}

bool ep_driver_semaphore_wait(EpDriverSemaphore* semaphore, EpDriverStream* stream, uint64_t value,
                              EpError* error) {
  ep_mutex_lock(&semaphore->device->mutex);
  bool good = vulkan_submit(stream, NULL, (VulkanPoint){semaphore->semaphore, value},
                            (VulkanPoint){NULL, 0}, error);
  ep_mutex_unlock(&semaphore->device->mutex);
  return good;
}

/* Vulkan leaves undefined what happens when a timeline goes back, so it is checked. */
bool ep_driver_semaphore_signal(EpDriverSemaphore* semaphore, EpDriverStream* stream,
                                uint64_t value, EpError* error) {
  EpDriverDevice* device = semaphore->device;
  uint64_t now = vulkan_reached(device, semaphore->semaphore);
  if (value <= now) {
    return ep_fail_argument(error, "value is %" PRIu64 ", but the semaphore is already at %" PRIu64,
                            value, now);
  }
  ep_mutex_lock(&device->mutex);
  bool good = vulkan_submit(stream, NULL, (VulkanPoint){NULL, 0},
                            (VulkanPoint){semaphore->semaphore, value}, error);
  ep_mutex_unlock(&device->mutex);
  return good;
}
