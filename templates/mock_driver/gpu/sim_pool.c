/* Simulated pools: memory that is allocated and freed in the order of streams. */
#include <stdlib.h>

#include "ep_platform.h"
#include "sim_stream.h"

typedef struct SimPool {
  bool waits; /* An allocation may wait for what another stream has yet to free. */
} SimPool;

typedef struct SimFreeTask {
  SimTask base;
  void* memory;
} SimFreeTask;

GpuResult sim_MemPoolCreate(GpuMemoryPool* out, const GpuMemoryPoolProps* properties) {
  int id = properties->location.id;
  if (id < 0 || id >= sim_device_count()) {
    return SIM_INVALID_DEVICE;
  }
  if (properties->allocType != GPU_MEMORY_POOL_PINNED || properties->handleTypes != 0 ||
      properties->location.type != GPU_MEMORY_POOL_OF_DEVICE ||
      properties->win32SecurityAttributes != NULL) {
    mock_offend("MemPoolCreate: the properties are not those of a device's own memory");
    return SIM_INVALID_VALUE;
  }
  SimPool* pool = malloc(sizeof *pool);
  if (pool == NULL) {
    return SIM_OUT_OF_MEMORY;
  }
  pool->waits = true;
  mock_object_add("pool", pool, sizeof *pool);
  *out = (GpuMemoryPool)pool;
  return GPU_SUCCESS;
}

GpuResult sim_MemPoolSetAttribute(GpuMemoryPool native, GpuMemoryPoolAttribute attribute,
                                  void* value) {
  if (!mock_object_find("pool", native, NULL) || attribute != GPU_MEMORY_POOL_REUSE_WAITING) {
    return SIM_INVALID_VALUE;
  }
  ((SimPool*)native)->waits = *(const int*)value != 0;
  return GPU_SUCCESS;
}

GpuResult sim_MemPoolDestroy(GpuMemoryPool native) {
  if (!mock_object_remove("pool", native)) {
    return SIM_INVALID_VALUE;
  }
  free((SimPool*)native);
  return GPU_SUCCESS;
}

GpuResult sim_MemAllocFromPoolAsync(GpuAddress* out, size_t bytes, GpuMemoryPool pool,
                                    GpuStream stream) {
  static const char call[] = "MemAllocFromPoolAsync";
  if (!mock_object_find("pool", pool, NULL) || !mock_object_find("stream", stream, NULL)) {
    mock_offend("%s: pool %p or stream %p is not alive", call, (void*)pool, (void*)stream);
    return SIM_INVALID_HANDLE;
  }
  if (((SimPool*)pool)->waits) {
    mock_offend("%s: the memory may have to wait for other work", call);
  }
  GpuResult result = sim_allocate(out, bytes, call);
  if (result == GPU_SUCCESS) {
    mock_object_add("pool memory", (void*)(uintptr_t)*out, bytes);
  }
  return result;
}

static void sim_free_run(SimTask* base) {
  SimFreeTask* task = (SimFreeTask*)base;
  (void)mock_object_remove("freed memory", task->memory);
  ep_aligned_free(task->memory);
}

GpuResult sim_MemFreeAsync(GpuAddress address, GpuStream stream) {
  void* memory = (void*)(uintptr_t)address;
  /* To be used no more, but there until its turn in the stream comes. */
  if (!mock_object_remove("pool memory", memory) || !mock_object_remove("memory", memory)) {
    return SIM_INVALID_VALUE;
  }
  SimFreeTask* task = malloc(sizeof *task);
  if (task != NULL) {
    *task = (SimFreeTask){{NULL, sim_free_run}, memory};
    mock_object_add("freed memory", memory, 1);
  }
  return sim_stream_enqueue(stream, task == NULL ? NULL : &task->base, "MemFreeAsync");
}
