/*
 * Streams: submissions that follow one another on a timeline of the stream's own. Only the stream's
 * worker, never the caller, waits for them.
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

bool vulkan_wait(EpDriverDevice* device, VulkanPoint point, EpError* error) {
  VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                              .semaphoreCount = 1,
                              .pSemaphores = &point.semaphore,
                              .pValues = &point.value};
  VkResult result = device->vk.vkWaitSemaphores(device->device, &wait, UINT64_MAX);
  return result == VK_SUCCESS || vulkan_failed(error, "vkWaitSemaphores", result);
}

uint64_t vulkan_reached(const EpDriverDevice* device, VkSemaphore timeline) {
  uint64_t value = 0;
  VkResult result = device->vk.vkGetSemaphoreCounterValue(device->device, timeline, &value);
  return result == VK_SUCCESS ? value : result == VK_ERROR_DEVICE_LOST ? UINT64_MAX : 0;
}

static bool vulkan_is_idle(const EpDriverStream* stream) {
  return vulkan_reached(stream->device, stream->timeline) >= stream->submitted;
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
  vulkan_recycle_until(stream, vulkan_reached(stream->device, stream->timeline));
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
  vulkan_recycle_until(stream, UINT64_MAX);
  device->vk.vkDestroyCommandPool(device->device, stream->pool, NULL);
  device->vk.vkDestroySemaphore(device->device, stream->timeline, NULL);
  free(stream);
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
  stream->farewell = (VulkanJob){.value = stream->submitted, .run = vulkan_farewell_run};
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
    (void)vulkan_wait(device, (VulkanPoint){stream->timeline, stream->submitted}, &ignored);
    ep_mutex_lock(&device->mutex);
    vulkan_stream_unlink(stream);
    ep_mutex_unlock(&device->mutex);
    vulkan_retire(device, vulkan_stream_done, stream); /* Others may wait for its timeline. */
  }
}

bool vulkan_has_streams(const EpDriverDevice* device) {
  const EpDriverStream* first = device->streams;
  return first != NULL && (first != device->copies || first->next != NULL);
}

void vulkan_copies_destroy(EpDriverDevice* device) {
  EpDriverStream* copies = device->copies;
  if (copies != NULL) {
    EpError ignored; /* It is idle, unless waiting for it has failed before. */
    (void)vulkan_wait(device, (VulkanPoint){copies->timeline, copies->submitted}, &ignored);
    vulkan_stream_unlink(copies);
    vulkan_stream_destroy(device, copies);
    device->copies = NULL;
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
    EpError ignored;
    while (!vulkan_wait(device, (VulkanPoint){stream->timeline, job->value}, &ignored) &&
           vulkan_reached(device, stream->timeline) < job->value) {
    }
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

VulkanPoint vulkan_stream_end(EpDriverStream* stream) {
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
bool vulkan_submit(EpDriverStream* stream, VkCommandBuffer commands, VulkanPoint wait,
                   VulkanPoint signal, EpError* error) {
  const VkSemaphore waits[] = {stream->timeline, wait.semaphore};
  const uint64_t wait_values[] = {stream->submitted, wait.value};
  const VkPipelineStageFlags stages[] = {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                         VK_PIPELINE_STAGE_ALL_COMMANDS_BIT};
  const VulkanPoint end = {stream->timeline, stream->submitted + 1};
  bool has_signal = signal.semaphore != NULL;
  VulkanPoint first = has_signal ? signal : end;
  VkTimelineSemaphoreSubmitInfo values[] = {
      {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
       .waitSemaphoreValueCount = wait.semaphore != NULL ? 2 : 1,
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
                                   .commandBufferCount = commands != NULL,
                                   .pCommandBuffers = &commands,
                                   .signalSemaphoreCount = 1,
                                   .pSignalSemaphores = &first.semaphore},
                                  {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                   .pNext = &values[1],
                                   .signalSemaphoreCount = 1,
                                   .pSignalSemaphores = &end.semaphore}};
  VkResult result =
      stream->device->vk.vkQueueSubmit(stream->queue->queue, has_signal ? 2 : 1, submits, NULL);
  if (result != VK_SUCCESS) {
    return vulkan_failed(error, "vkQueueSubmit", result);
  }
  ++stream->submitted;
  return true;
}
