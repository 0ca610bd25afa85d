#include <ctype.h>
#include <stdlib.h>

#include "gpu_device.h"

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

void ep_driver_close(EpDriver* driver) {
  for (size_t i = 0; i < driver->device_count; ++i) {
    gpu_device_close(&driver->devices[i]);
  }
  free(driver->devices);
  free(driver);
}

bool ep_driver_open(EpDriver** out, EpError* error) {
  *out = NULL;
  EpDriver* driver = calloc(1, sizeof *driver);
  if (driver == NULL) {
    return ep_out_of_memory(error);
  }
  int count = 0;
  /* No driver, none that works here and no device are the same to the application: no devices. */
  bool usable = driver_api_open(&driver->api) && driver->api.Init(0) == GPU_SUCCESS &&
                driver->api.DeviceGetCount(&count) == GPU_SUCCESS && count > 0;
  bool good = true;
  if (usable) {
    driver->devices = calloc((size_t)count, sizeof *driver->devices);
    good = driver->devices != NULL || ep_out_of_memory(error);
  }
  for (size_t i = 0; usable && good && i < (size_t)count; ++i) {
    good = gpu_device_open(driver, i, error);
  }
  if (!good) {
    ep_driver_close(driver);
    return false;
  }
  *out = driver;
  return true;
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
