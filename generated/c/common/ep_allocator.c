#include "ep_allocator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ep_config.h"

typedef struct EpAllocator {
  OrtAllocator base;
  EpDevice* device;
  EpRegistry blocks; /* Live allocations; the value is their size. */
  EpMutex mutex;     /* Guards what follows. */
  uint64_t bytes_in_use;
  uint64_t most_bytes_in_use;
  uint64_t largest_allocation;
  uint64_t allocations;
} EpAllocator;

static void ep_allocator_count(EpAllocator* allocator, size_t bytes) {
  ep_mutex_lock(&allocator->mutex);
  allocator->allocations += 1;
  allocator->bytes_in_use += bytes;
  if (allocator->bytes_in_use > allocator->most_bytes_in_use) {
    allocator->most_bytes_in_use = allocator->bytes_in_use;
  }
  if (bytes > allocator->largest_allocation) {
    allocator->largest_allocation = bytes;
  }
  ep_mutex_unlock(&allocator->mutex);
}

static void* ORT_API_CALL ep_allocator_alloc(OrtAllocator* base, size_t bytes) {
  EpAllocator* allocator = (EpAllocator*)base;
  void* memory = bytes == 0 ? NULL : ep_driver_alloc(allocator->device->driver, bytes);
  if (memory == NULL) {
    return NULL;
  }
  if (!ep_registry_add(&allocator->blocks, memory, bytes)) {
    ep_driver_free(allocator->device->driver, memory);
    return NULL;
  }
  ep_allocator_count(allocator, bytes);
  return memory;
}

static void ORT_API_CALL ep_allocator_free(OrtAllocator* base, void* memory) {
  EpAllocator* allocator = (EpAllocator*)base;
  uintptr_t bytes = 0;
  if (memory == NULL || !ep_registry_remove(&allocator->blocks, memory, &bytes)) {
    return;
  }
  ep_mutex_lock(&allocator->mutex);
  allocator->bytes_in_use -= bytes;
  ep_mutex_unlock(&allocator->mutex);
  ep_driver_free(allocator->device->driver, memory);
}

static const OrtMemoryInfo* ORT_API_CALL ep_allocator_info(const OrtAllocator* base) {
  return ((const EpAllocator*)base)->device->memory_info;
}

static OrtStatus* ORT_API_CALL ep_allocator_get_stats(const OrtAllocator* base,
                                                      OrtKeyValuePairs** out) {
  /* The slot's `this` is const, its lock is not. */
  EpAllocator* allocator = (EpAllocator*)(uintptr_t)base;
  const OrtApi* api = allocator->device->context->api;
  ep_mutex_lock(&allocator->mutex);
  const struct {
    const char* key;
    uint64_t value;
  } rows[] = {
      {"InUse", allocator->bytes_in_use},         {"TotalAllocated", allocator->bytes_in_use},
      {"MaxInUse", allocator->most_bytes_in_use}, {"MaxAllocSize", allocator->largest_allocation},
      {"NumAllocs", allocator->allocations},
  };
  ep_mutex_unlock(&allocator->mutex);
  api->CreateKeyValuePairs(out);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, rows[i].value);
    api->AddKeyValuePair(*out, rows[i].key, text);
  }
  return NULL;
}

OrtAllocator* ep_allocator_create(EpDevice* device, EpError* error) {
  EpAllocator* allocator = calloc(1, sizeof *allocator);
  if (allocator == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  ep_context_retain(device->context);
  allocator->device = device;
  ep_registry_init(&allocator->blocks);
  ep_mutex_init(&allocator->mutex);
  allocator->base.version = device->context->stamp;
  allocator->base.Alloc = ep_allocator_alloc;
  allocator->base.Free = ep_allocator_free;
  allocator->base.Info = ep_allocator_info;
  allocator->base.Reserve = ep_allocator_alloc;
  allocator->base.GetStats = ep_allocator_get_stats;
  return &allocator->base;
}

void ep_allocator_release(OrtAllocator* base) {
  EpAllocator* allocator = (EpAllocator*)base;
  if (allocator == NULL) {
    return;
  }
  EpContext* context = allocator->device->context;
  ep_registry_destroy(&allocator->blocks);
  ep_mutex_destroy(&allocator->mutex);
  free(allocator);
  ep_context_release(context);
}
