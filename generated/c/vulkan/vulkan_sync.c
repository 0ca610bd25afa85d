/*
 * Events, which are points of a stream's timeline, and imported timeline semaphores.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "vulkan_stream.h"

struct EpDriverEvent {
  EpDriverDevice* device;
  EpDriverStream* producer; /* Null before the first record. */
  uint64_t value;
};

struct EpDriverSemaphore {
  EpRetirement retirement; /* First, so that one is found from the other. */
  EpDriverDevice* device;
  VkSemaphore semaphore;
};

bool ep_driver_event_create(EpDriverDevice* device, EpDriverEvent** out, EpError* error) {
  EpDriverEvent* event = calloc(1, sizeof *event);
  *out = event;
  if (event == NULL) {
    return ep_out_of_memory(error);
  }
  event->device = device;
  return true;
}

void ep_driver_event_release(EpDriverEvent* event) {
  if (event->producer != NULL) {
    ep_queue_drop(&event->producer->base);
  }
  free(event);
}

bool ep_driver_event_record(EpDriverEvent* event, EpDriverStream* stream, EpError* error) {
  (void)error;
  ep_mutex_lock(&event->device->mutex);
  EpDriverStream* before = event->producer;
  ep_queue_retain(&stream->base);
  event->value = stream->enqueued;
  event->producer = stream;
  ep_mutex_unlock(&event->device->mutex);
  if (before != NULL) {
    ep_queue_drop(&before->base);
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
    ep_queue_retain(&producer->base);
    point.semaphore = producer->timeline;
  }
  ep_mutex_unlock(&device->mutex);
  if (producer == NULL) {
    return true;
  }
  bool good = vulkan_wait(device, point, error);
  ep_mutex_lock(&device->mutex);
  if (good && producer->error.code != ORT_OK) {
    *error = producer->error;
    good = false;
  }
  ep_mutex_unlock(&device->mutex);
  ep_queue_drop(&producer->base);
  return good;
}

static bool vulkan_import_native(EpDriverDevice* device, const EpHandleType* type,
                                 EpNativeHandle native, VkSemaphore semaphore, EpError* error) {
  if (type->kind == EP_NATIVE_FD) {
    VkImportSemaphoreFdInfoKHR info = {DRIVER_INIT(VkImportSemaphoreFdInfoKHR),
                                       .semaphore = semaphore, .handleType = type->driver_type,
                                       .fd = native.fd};
    return DRIVER_TRY(&device->vk, error, vkImportSemaphoreFdKHR, device->device, &info);
  }
  VkImportSemaphoreWin32HandleInfoKHR info = {
      DRIVER_INIT(VkImportSemaphoreWin32HandleInfoKHR), .semaphore = semaphore,
      .handleType = type->driver_type, .handle = native.handle};
  return DRIVER_TRY(&device->vk, error, vkImportSemaphoreWin32HandleKHR, device->device, &info);
}

bool ep_driver_import_semaphore(EpDriverDevice* device, const EpHandleType* type,
                                EpNativeHandle native, EpDriverSemaphore** out, EpError* error) {
  *out = NULL;
  if (!vulkan_device_ready(device, error)) {
    return false;
  }
  EpDriverSemaphore* semaphore = malloc(sizeof *semaphore);
  if (semaphore == NULL) {
    return ep_out_of_memory(error);
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

static void vulkan_semaphore_retired(EpRetirement* retirement) {
  EpDriverSemaphore* semaphore = (EpDriverSemaphore*)retirement;
  EpDriverDevice* device = semaphore->device;
  device->vk.vkDestroySemaphore(device->device, semaphore->semaphore, NULL);
  ep_mutex_lock(&device->mutex);
  --device->semaphores;
  ep_mutex_unlock(&device->mutex);
  free(semaphore);
}

void ep_driver_semaphore_release(EpDriverSemaphore* semaphore) {
  ep_queues_retire(&semaphore->device->streams, &semaphore->retirement, vulkan_semaphore_retired);
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
  if (value <= now && now != UINT64_MAX) {
    return ep_fail_argument(error, "value is %" PRIu64 ", but the semaphore is already at %" PRIu64,
                            value, now);
  }
  ep_mutex_lock(&device->mutex);
  bool good = vulkan_submit(stream, NULL, (VulkanPoint){NULL, 0},
                            (VulkanPoint){semaphore->semaphore, value}, error);
  ep_mutex_unlock(&device->mutex);
  return good;
}
