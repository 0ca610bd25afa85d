/*
 * Streams, from their making to the end of their last work; and the release of what they use.
 */
#include "vulkan_stream.h"

#include <stdlib.h>

bool vulkan_semaphore_create(EpDriverDevice* device, VkSemaphore* semaphore, EpError* error) {
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

static bool vulkan_is_idle(const EpDriverStream* stream) {
  return stream->handed == stream->enqueued &&
         vulkan_reached(stream->device, stream->timeline) >= stream->enqueued;
}

static void vulkan_recycle_until(EpDriverStream* stream, uint64_t reached) {
  EpDriverDevice* device = stream->device;
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

void vulkan_recycle(EpDriverStream* stream) {
  /* Of a lost device the timeline is past everything, but jobs may still submit. */
  uint64_t reached = vulkan_reached(stream->device, stream->timeline);
  vulkan_recycle_until(stream, reached < stream->handed ? reached : stream->handed);
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
  ep_error_clear(&stream->error);
  stream->queue = vulkan_queue_for_stream(device);
  ++stream->queue->streams;
  ++device->stream_count;
  stream->next = device->streams;
  device->streams = stream;
  return stream;
}

/* Idle, and unknown to everyone. Called with the mutex held, or when nobody else uses the device. */
static void vulkan_stream_destroy(EpDriverDevice* device, EpDriverStream* stream) {
  vulkan_recycle_until(stream, UINT64_MAX);
  device->vk.vkDestroyCommandPool(device->device, stream->pool, NULL);
  device->vk.vkDestroySemaphore(device->device, stream->timeline, NULL);
  free(stream);
  --device->stream_count;
}

/* Called with the mutex held; nobody refers to the stream any longer. */
static void vulkan_stream_unlink(EpDriverStream* stream) {
  EpDriverStream** link = &stream->device->streams;
  while (*link != stream) {
    link = &(*link)->next;
  }
  *link = stream->next;
  --stream->queue->streams;
}

static void vulkan_stream_done(EpDriverDevice* device, void* object) {
  ep_mutex_lock(&device->mutex);
  vulkan_stream_destroy(device, object);
  ep_mutex_unlock(&device->mutex);
}

static void vulkan_farewell_run(EpDriverStream* stream, VulkanJob* job) {
  (void)stream;
  (void)job;
}

/* Gives the last reference to the worker, so that the stream is known while it has work. Called with
 * the mutex held. */
static bool vulkan_stream_linger(EpDriverStream* stream) {
  stream->farewell =
      (VulkanJob){.after = {stream->timeline, stream->enqueued}, .run = vulkan_farewell_run};
  if (vulkan_is_idle(stream) || !vulkan_stream_add_job(stream, &stream->farewell)) {
    return false;
  }
  --stream->references;
  return true;
}

void vulkan_stream_drop(EpDriverStream* stream) {
  EpDriverDevice* device = stream->device;
  ep_mutex_lock(&device->mutex);
  bool last = stream->references == 1;
  bool lingers = last && vulkan_stream_linger(stream);
  if (!last) {
    --stream->references;
  }
  ep_mutex_unlock(&device->mutex);
  if (last && !lingers) {
    EpError ignored; /* Returns at once, unless the system refused a thread. */
    (void)vulkan_wait(device, (VulkanPoint){stream->timeline, stream->enqueued}, &ignored);
    ep_mutex_lock(&device->mutex);
    vulkan_stream_unlink(stream);
    ep_mutex_unlock(&device->mutex);
    vulkan_retire(device, vulkan_stream_done, stream); /* Others may wait for its timeline. */
  }
}

bool vulkan_has_streams(const EpDriverDevice* device) {
  return device->stream_count > (device->copies != NULL ? 1 : 0);
}

void vulkan_copies_destroy(EpDriverDevice* device) {
  EpDriverStream* copies = device->copies;
  if (copies != NULL) {
    EpError ignored; /* It is idle, unless waiting for it has failed before. */
    (void)vulkan_wait(device, (VulkanPoint){copies->timeline, copies->enqueued}, &ignored);
    vulkan_stream_unlink(copies);
    vulkan_stream_destroy(device, copies);
    device->copies = NULL;
  }
}

VulkanPoint vulkan_stream_end(EpDriverStream* stream) {
  ++stream->references;
  return (VulkanPoint){stream->timeline, stream->enqueued};
}

/* Blocks until the stream has done what it holds now. */
static bool vulkan_stream_settle(EpDriverStream* stream, EpError* error) {
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

bool ep_driver_stream_flush(EpDriverStream* stream, EpError* error) {
  EpDriverDevice* device = stream->device;
  bool good = vulkan_stream_settle(stream, error);
  ep_mutex_lock(&device->mutex);
  if (good && stream->error.code != ORT_OK) {
    *error = stream->error;
    good = false;
    if (stream->handed == stream->enqueued) { /* Else jobs still have to see it. */
      ep_error_clear(&stream->error);
    }
  }
  ep_mutex_unlock(&device->mutex);
  return good;
}

/* Blocks until all streams have done what they hold now. */
static void vulkan_device_settle(EpDriverDevice* device) {
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
  for (size_t i = 0; i < count; ++i) {
    EpError ignored;
    (void)vulkan_stream_settle(held[i], &ignored);
    vulkan_stream_drop(held[i]);
  }
  free(held);
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
  job->base.after = (VulkanPoint){stream->timeline, stream->enqueued};
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
    vulkan_device_settle(device); /* The last resort blocks. */
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
