/* What the simulation of HIP has of its own: a current device for each thread. */
#include <string.h>

#include "sim_gpu.h"

/* Threads begin with a device that is none of the EP's, as in an application that uses another. */
#define SIM_FOREIGN_DEVICE 7

static _Thread_local int sim_current = SIM_FOREIGN_DEVICE;

bool sim_has_context(const char* call) {
  bool right = sim_current >= 0 && sim_current < sim_device_count();
  if (!right) {
    mock_offend("%s: device %d is current", call, sim_current);
  }
  return right;
}

int sim_current_device(void) {
  return sim_current;
}

bool sim_context_lasts(void) {
  return true;
}

hipError_t sim_DeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  (void)device;
  *value = (int)mock_option("pools", 1);
  return attribute == hipDeviceAttributeMemoryPoolsSupported ? hipSuccess : hipErrorInvalidValue;
}

hipError_t sim_DriverGetVersion(int* version) {
  *version = (int)mock_option("version", 60342134);
  return hipSuccess;
}

hipError_t sim_GetDevice(int* device) {
  *device = sim_current;
  return hipSuccess;
}

hipError_t sim_SetDevice(int device) {
  if (device != SIM_FOREIGN_DEVICE && (device < 0 || device >= sim_device_count())) {
    return hipErrorInvalidDevice;
  }
  mock_count_context((device != SIM_FOREIGN_DEVICE) - (sim_current != SIM_FOREIGN_DEVICE));
  sim_current = device;
  return hipSuccess;
}

hipError_t sim_GetDeviceProperties(hipDeviceProp_tR0600* properties, int device) {
  memset(properties, 0, sizeof *properties);
  if (mock_option("luid", 0) != 0) {
    properties->luid[0] = (char)(mock_option("luid", 0) + device);
    properties->luidDeviceNodeMask = 1;
  }
  return hipSuccess;
}

hipError_t sim_MemcpyHtoDAsync(hipDeviceptr_t destination, void* source, size_t bytes,
                               hipStream_t stream) {
  return sim_copy(destination, source, bytes, source, stream);
}

hipError_t sim_MemcpyDtoHAsync(void* destination, hipDeviceptr_t source, size_t bytes,
                               hipStream_t stream) {
  return sim_copy(destination, source, bytes, destination, stream);
}

hipError_t sim_MemcpyDtoDAsync(hipDeviceptr_t destination, hipDeviceptr_t source, size_t bytes,
                               hipStream_t stream) {
  return sim_copy(destination, source, bytes, NULL, stream);
}
