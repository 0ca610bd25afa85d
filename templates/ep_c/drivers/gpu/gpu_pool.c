/* Memory that is allocated and freed in the order of streams, so that neither blocks. */
#include "gpu_device.h"

bool gpu_pool_supported(const EpDriverDevice* device) {
  const DriverApi* api = &device->driver->api;
  int supported = 0;
  return api->MemPoolCreate != NULL && api->MemPoolSetAttribute != NULL &&
         api->MemPoolDestroy != NULL && api->MemAllocFromPoolAsync != NULL &&
         api->MemFreeAsync != NULL &&
         api->DeviceGetAttribute(&supported, GPU_MEMORY_POOLS_SUPPORTED, device->native) ==
             GPU_SUCCESS &&
         supported != 0;
}

void gpu_pool_destroy(EpDriverDevice* device) {
  const DriverApi* api = &device->driver->api;
  /* What is still to be freed is, when its turn comes. */
  if (device->pool.frees != NULL) {
    (void)api->StreamDestroy(device->pool.frees);
  }
  if (device->pool.allocations != NULL) {
    (void)api->StreamDestroy(device->pool.allocations);
  }
  if (device->pool.native != NULL) {
    (void)api->MemPoolDestroy(device->pool.native);
  }
  device->pool = (GpuPool){0};
}

/* The device's mutex is held. */
static bool gpu_pool_create(EpDriverDevice* device, EpError* error) {
  GpuPool* pool = &device->pool;
  GpuMemoryPoolProps properties = {0};
  properties.allocType = GPU_MEMORY_POOL_PINNED;
  properties.location.type = GPU_MEMORY_POOL_OF_DEVICE;
  properties.location.id = (int)device->info.memory_device_id;
  /* Rather no memory than memory that another stream has yet to free, for that may take its time. */
  int reuse = 0;
  bool good = GPU_CALL(device, error, MemPoolCreate, &pool->native, &properties) &&
              GPU_CALL(device, error, MemPoolSetAttribute, pool->native,
                       GPU_MEMORY_POOL_REUSE_WAITING, &reuse) &&
              GPU_CALL(device, error, StreamCreate, &pool->allocations, GPU_STREAM_NON_BLOCKING) &&
              GPU_CALL(device, error, StreamCreate, &pool->frees, GPU_STREAM_NON_BLOCKING);
  if (!good) {
    gpu_pool_destroy(device);
  }
  return good;
}

bool gpu_pool_alloc(EpDriverDevice* device, size_t bytes, GpuAddress* out, EpError* error) {
  GpuPool* pool = &device->pool;
  ep_mutex_lock(&device->mutex);
  bool good = pool->native != NULL || gpu_pool_create(device, error);
  ep_mutex_unlock(&device->mutex);
  if (!good || !GPU_CALL(device, error, MemAllocFromPoolAsync, out, bytes, pool->native,
                         pool->allocations)) {
    return false;
  }
  /* So far the memory is there for what comes later in this stream only. */
  good = GPU_CALL(device, error, StreamSynchronize, pool->allocations);
  if (!good) {
    (void)device->driver->api.MemFreeAsync(*out, pool->allocations);
  }
  return good;
}
