#include <ctype.h>
#include <stdlib.h>

#include "gpu_device.h"

/* One for the process, as the vendor's driver is: a stream of one factory may hold work on memory of
 * another, so all must be known in one place. */
static EpMutex gpu_driver_mutex = EP_MUTEX_INITIALIZER;
static EpDriver* gpu_driver;

bool gpu_check(GpuResult result, const char* call, EpError* error) {
  if (result == GPU_SUCCESS) {
    return true;
  }
  const char* name = driver_result_name(result);
  return ep_fail(error, driver_result_status(result), EP_NAME ": %s: %s (%d)", call,
                 name != NULL ? name : "unknown error", (int)result);
}

bool gpu_out_of_memory(EpError* error) {
  return ep_fail(error, ORT_FAIL, EP_NAME ": out of memory");
}

static bool gpu_device_open(EpDriver* driver, size_t index, EpError* error) {
  EpDriverDevice* device = &driver->devices[index];
  device->driver = driver;
  ep_mutex_init(&device->gate);
  ep_mutex_init(&device->mutex);
  ep_mutex_init(&device->staging_mutex);
  ep_registry_init(&device->allocations);
  driver->device_count = index + 1;
  if (!GPU_CALL(device, error, DeviceGet, &device->native, (int)index) ||
      !GPU_CALL(device, error, DeviceGetName, device->name, GPU_NAME_CAPACITY, device->native)) {
    return false;
  }
  EpDeviceInfo* info = &device->info;
  if (driver->api.DeviceGetPCIBusId(device->bus_id, GPU_BUS_ID_CAPACITY, device->native) ==
      GPU_SUCCESS) {
    for (char* c = device->bus_id; *c != '\0'; ++c) {
      *c = (char)tolower((unsigned char)*c);
    }
    info->pci_bus_id = device->bus_id;
  }
  info->name = device->name;
  info->hardware_type = EP_HARDWARE_TYPE;
  info->hardware_vendor_id = EP_VENDOR_ID;
  info->hardware_vendor = EP_VENDOR;
  info->memory_device_type = EP_MEMORY_DEVICE_TYPE;
  info->memory_device_id = (uint32_t)index;
  device->pooled = gpu_pool_supported(device);
  gpu_backend_identify(device);
  return true;
}

static void gpu_device_close(EpDriverDevice* device) {
  GpuScope scope;
  if (device->primary != NULL && gpu_enter_to_release(device->primary, &scope)) {
    gpu_staging_destroy(device);
    gpu_pool_destroy(device);
    (void)gpu_leave(&scope, true);
  }
  gpu_context_drop(device->graphics);
  gpu_context_drop(device->primary);
  ep_registry_destroy(&device->allocations);
  ep_mutex_destroy(&device->staging_mutex);
  ep_mutex_destroy(&device->mutex);
  ep_mutex_destroy(&device->gate);
}

static void gpu_driver_destroy(EpDriver* driver) {
  for (size_t i = 0; i < driver->device_count; ++i) {
    gpu_device_close(&driver->devices[i]);
  }
  free(driver->devices);
  free(driver);
}

/* A new driver with all its devices, into `*out`. */
static bool gpu_driver_create(EpDriver** out, EpError* error) {
  EpDriver* driver = calloc(1, sizeof *driver);
  if (driver == NULL) {
    return gpu_out_of_memory(error);
  }
  atomic_init(&driver->references, 1);
  int count = 0;
  /* No driver, none that works here and no device are the same to the application: no devices. */
  bool usable = driver_api_open(&driver->api) && driver->api.Init(0) == GPU_SUCCESS &&
                driver->api.DeviceGetCount(&count) == GPU_SUCCESS && count > 0;
  bool good = true;
  if (usable) {
    driver->devices = calloc((size_t)count, sizeof *driver->devices);
    good = driver->devices != NULL || gpu_out_of_memory(error);
  }
  for (size_t i = 0; usable && good && i < (size_t)count; ++i) {
    good = gpu_device_open(driver, i, error);
  }
  if (!good) {
    gpu_driver_destroy(driver);
    return false;
  }
  *out = driver;
  return true;
}

bool ep_driver_open(EpDriver** out, EpError* error) {
  *out = NULL;
  ep_mutex_lock(&gpu_driver_mutex);
  bool good = true;
  if (gpu_driver != NULL) {
    gpu_driver_retain(gpu_driver);
  } else {
    good = gpu_driver_create(&gpu_driver, error);
  }
  *out = gpu_driver;
  ep_mutex_unlock(&gpu_driver_mutex);
  return good;
}

void gpu_driver_retain(EpDriver* driver) {
  atomic_fetch_add_explicit(&driver->references, 1, memory_order_relaxed);
}

void gpu_driver_drop(EpDriver* driver) {
  ep_mutex_lock(&gpu_driver_mutex);
  if (atomic_fetch_sub_explicit(&driver->references, 1, memory_order_acq_rel) == 1) {
    gpu_driver = NULL;
    gpu_driver_destroy(driver);
  }
  ep_mutex_unlock(&gpu_driver_mutex);
}

void ep_driver_close(EpDriver* driver) {
  if (driver != NULL) {
    gpu_driver_drop(driver);
  }
}

size_t ep_driver_device_count(const EpDriver* driver) {
  return driver->device_count;
}

EpDriverDevice* ep_driver_device(EpDriver* driver, size_t index) {
  return &driver->devices[index];
}

const EpDeviceInfo* ep_driver_device_info(const EpDriverDevice* device) {
  return &device->info;
}
