/*
 * The host driver: tensors live in memory that the CPU and the exporter share, streams are worker
 * threads. ep_driver.h says what each function does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_device.h"

/* Enough for every element type and for vector loads. */
#define HOST_ALIGNMENT 64

struct EpDriver {
  EpDriverDevice device;
};

static void host_stream_destroy(EpQueue* queue) {
  free(queue);
}

static const EpQueueKind host_streams = {.end = ep_queue_last_task,
                                         .passed = ep_queue_did_task,
                                         .await = ep_queue_await_task,
                                         .destroy = host_stream_destroy,
                                         .stays = true};

/* Memory is shared within one running kernel, so its id is the device's. */
static bool host_read_boot_id(uint8_t uuid[16]) {
  FILE* file = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (file == NULL) {
    return false;
  }
  size_t digits = 0;
  for (int c = fgetc(file); c != EOF && digits < 32; c = fgetc(file)) {
    unsigned nibble = c >= '0' && c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
    if (nibble < 16) {
      uuid[digits / 2] = (uint8_t)((unsigned)uuid[digits / 2] << 4 | nibble);
      ++digits;
    }
  }
  (void)fclose(file);
  return digits == 32;
}

bool ep_driver_open(EpDriver** out, EpError* error) {
  *out = NULL;
  EpDriver* driver = calloc(1, sizeof *driver);
  if (driver == NULL) {
    return ep_out_of_memory(error);
  }
  ep_mutex_init(&driver->device.mutex);
  ep_queues_init(&driver->device.queues, &host_streams, driver, &driver->device.mutex);
  EpDeviceInfo* info = &driver->device.info;
  info->name = "host memory";
  info->hardware_type = EP_HARDWARE_TYPE;
  info->hardware_vendor = EP_VENDOR;
  info->has_uuid = host_read_boot_id(info->uuid);
  info->memory_device_type = EP_MEMORY_DEVICE_TYPE;
  info->host_access = true;
  *out = driver;
  return true;
}

void ep_driver_close(EpDriver* driver) {
  ep_mutex_destroy(&driver->device.mutex);
  free(driver);
}

size_t ep_driver_device_count(const EpDriver* driver) {
  (void)driver;
  return 1;
}

EpDriverDevice* ep_driver_device(EpDriver* driver, size_t index) {
  (void)index;
  return &driver->device;
}

const EpDeviceInfo* ep_driver_device_info(const EpDriverDevice* device) {
  return &device->info;
}

/* What lies before each allocation, so that freeing it needs no memory. */
typedef union HostBlock {
  EpRetirement retirement;
  char alignment[HOST_ALIGNMENT];
} HostBlock;

void* ep_driver_alloc(EpDriverDevice* device, size_t bytes) {
  (void)device;
  if (bytes > SIZE_MAX - sizeof(HostBlock)) {
    return NULL;
  }
  HostBlock* block = ep_aligned_alloc(HOST_ALIGNMENT, sizeof *block + bytes);
  return block == NULL ? NULL : block + 1;
}

static void host_block_free(EpRetirement* retirement) {
  ep_aligned_free(retirement);
}

void ep_driver_free(EpDriverDevice* device, void* memory) {
  HostBlock* block = (HostBlock*)memory - 1;
  ep_queues_retire(&device->queues, &block->retirement, host_block_free);
}

bool ep_driver_stream_create(EpDriverDevice* device, EpDriverStream** out, EpError* error) {
  EpDriverStream* stream = malloc(sizeof *stream);
  *out = stream;
  if (stream == NULL) {
    return ep_out_of_memory(error);
  }
  ep_error_clear(&stream->error);
  ep_mutex_lock(&device->mutex);
  ep_queue_open(&stream->queue, &device->queues);
  bool started = ep_queue_start(&stream->queue);
  if (!started) {
    ep_queue_remove(&stream->queue);
  }
  ep_mutex_unlock(&device->mutex);
  if (!started) {
    free(stream);
    *out = NULL;
    return ep_fail(error, ORT_EP_FAIL, EP_NAME ": no thread for another stream");
  }
  return true;
}

void ep_driver_stream_release(EpDriverStream* stream) {
  ep_queue_drop(&stream->queue);
}

void* ep_driver_stream_native(EpDriverStream* stream) {
  return stream;
}

EpDriverStream* ep_driver_stream_from_native(EpDriverDevice* device, void* native) {
  return (EpDriverStream*)ep_queues_find(&device->queues, native);
}

bool ep_driver_stream_flush(EpDriverStream* stream, EpError* error) {
  EpQueue* queue = &stream->queue;
  ep_queue_await_task(queue, ep_queue_last_task(queue));
  ep_mutex_lock(&queue->mutex);
  bool good = stream->error.code == ORT_OK;
  if (!good) {
    *error = stream->error;
    ep_error_clear(&stream->error);
  }
  ep_mutex_unlock(&queue->mutex);
  return good;
}

typedef struct HostCopyTask {
  EpTask base;
  void* destination;
  const void* source;
  void* staging; /* Owned copy of the source, or null. */
  size_t bytes;
} HostCopyTask;

static void host_copy_run(EpQueue* queue, EpTask* base) {
  (void)queue;
  HostCopyTask* task = (HostCopyTask*)base;
  memmove(task->destination, task->source, task->bytes);
  free(task->staging);
  free(task);
}

static void host_copy_now(void* argument) {
  const HostCopyTask* task = argument;
  memmove(task->destination, task->source, task->bytes);
}

bool ep_driver_copy(EpDriverDevice* device, EpDriverStream* stream, EpCopyKind kind,
                    void* destination, const void* source, size_t bytes, EpError* error) {
  (void)device;
  HostCopyTask copy = {
      .base.run = host_copy_run, .destination = destination, .source = source, .bytes = bytes};
  bool staged = kind == EP_COPY_HOST_TO_DEVICE;
  /* A source that has to be read before the call returns is best read straight to where it goes. It
   * also spares users of an EP without OrtEp::Sync (built for 1.24) a race: since 1.31 binding a CPU
   * input copies on the session's stream, and a run on another stream does not wait for it. */
  if (stream == NULL) {
    host_copy_now(&copy);
    return true;
  }
  if (staged && ep_queue_do_if_idle(&stream->queue, host_copy_now, &copy)) {
    return true;
  }
  HostCopyTask* task = malloc(sizeof *task);
  copy.staging = staged ? malloc(bytes) : NULL;
  if (task == NULL || (staged && copy.staging == NULL)) {
    free(task);
    free(copy.staging);
    return ep_out_of_memory(error);
  }
  if (staged) {
    memcpy(copy.staging, source, bytes);
    copy.source = copy.staging;
  }
  *task = copy;
  return ep_queue_add(&stream->queue, &task->base);
}

#if ORT_API_VERSION >= 25
bool ep_driver_graphics_init(EpDriverDevice* device, const OrtApi* api,
                             const OrtGraphicsInteropConfig* config, EpError* error) {
  (void)device;
  (void)api;
  (void)config;
  return ep_fail(error, ORT_NOT_IMPLEMENTED, EP_NAME " does not work beside a graphics API");
}

bool ep_driver_graphics_deinit(EpDriverDevice* device, EpError* error) {
  (void)device;
  return ep_fail(error, ORT_NOT_IMPLEMENTED, EP_NAME " does not work beside a graphics API");
}
#endif
