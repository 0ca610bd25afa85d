#include <stdio.h>
#include <string.h>

#include "sim_gpu.h"

int sim_device_count(void) {
  return (int)mock_option("devices", 1);
}

static bool sim_is_device(GpuDevice device) {
  return device >= 0 && device < sim_device_count();
}

GpuResult sim_Init(unsigned int flags) {
  return flags == 0 ? (GpuResult)mock_option("init", 0) : SIM_INVALID_VALUE;
}

GpuResult sim_DeviceGetCount(int* count) {
  *count = sim_device_count();
  return GPU_SUCCESS;
}

GpuResult sim_DeviceGet(GpuDevice* device, int ordinal) {
  *device = ordinal;
  return sim_is_device(ordinal) ? GPU_SUCCESS : SIM_INVALID_DEVICE;
}

GpuResult sim_DeviceGetName(char* name, int length, GpuDevice device) {
  (void)snprintf(name, (size_t)length, "mock device %d", (int)device);
  return sim_is_device(device) ? GPU_SUCCESS : SIM_INVALID_DEVICE;
}

GpuResult sim_DeviceGetPCIBusId(char* text, int length, GpuDevice device) {
  (void)snprintf(text, (size_t)length, "0000:%02X:00.0", 0x0A + (unsigned)device);
  return sim_is_device(device) ? GPU_SUCCESS : SIM_INVALID_DEVICE;
}
