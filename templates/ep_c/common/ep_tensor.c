#include "ep_tensor.h"

#include <stdint.h>
#include <string.h>

#include "ep_config.h"
#include "ep_trace.h"

bool ep_tensor_view(EpContext* context, const OrtValue* value, const char* name, EpTensorView* view,
                    EpError* error) {
  const OrtMemoryDevice* memory_device = context->ep_api->Value_GetMemoryDevice(value);
  if (memory_device == NULL) {
    return ep_fail_argument(error, "%s is not a tensor", name);
  }
  view->device = ep_context_find_memory(context, memory_device);
  if (view->device == NULL &&
      context->ep_api->MemoryDevice_GetDeviceType(memory_device) != OrtMemoryInfoDeviceType_CPU) {
    return ep_fail_argument(error, "%s is neither on a device of " EP_NAME " nor on the host",
                            name);
  }
  const void* data = NULL;
  if (!ep_check(context->api, context->api->GetTensorSizeInBytes(value, &view->bytes), error) ||
      !ep_check(context->api, context->api->GetTensorData(value, &data), error)) {
    return false;
  }
  view->data = (void*)(uintptr_t)data;
  return true;
}

bool ep_tensor_copy(const EpTensorView* destination, const EpTensorView* source,
                    EpDriverStream* stream, EpError* error) {
  if (destination->bytes != source->bytes) {
    return ep_fail_argument(error, "source has %zu bytes, destination has %zu", source->bytes,
                            destination->bytes);
  }
  if (source->bytes == 0 || destination->data == source->data) {
    return true;
  }
  const EpDevice* device = source->device != NULL ? source->device : destination->device;
  if (device == NULL) {
    memmove(destination->data, source->data, source->bytes);
    return true;
  }
  EpCopyKind kind = source->device == NULL        ? EP_COPY_HOST_TO_DEVICE
                    : destination->device == NULL ? EP_COPY_DEVICE_TO_HOST
                                                  : EP_COPY_DEVICE_TO_DEVICE;
  return ep_driver_copy(device->driver, stream, kind, destination->data, source->data,
                        source->bytes, error);
}

static bool ep_tensor_shape(const OrtApi* api, const OrtValue* value, int64_t* dimensions,
                            size_t* rank, EpError* error) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  if (!ep_check(api, api->GetTensorTypeAndShape(value, &info), error)) {
    return false;
  }
  bool known = ep_check(api, api->GetDimensionsCount(info, rank), error);
  if (known && *rank > EP_MAX_RANK) {
    known = ep_fail(error, ORT_NOT_IMPLEMENTED, "input 0 has %zu dimensions, more than %d", *rank,
                    EP_MAX_RANK);
  }
  known = known && ep_check(api, api->GetDimensions(info, dimensions, *rank), error);
  api->ReleaseTensorTypeAndShapeInfo(info);
  return known;
}

bool ep_tensor_copy_through(EpDevice* device, OrtKernelContext* kernel, const char* what,
                            EpError* error) {
  EpContext* context = device->context;
  const OrtApi* api = context->api;
  const OrtValue* input = NULL;
  OrtValue* output = NULL;
  int64_t dimensions[EP_MAX_RANK];
  size_t rank = 0;
  void* native = NULL;
  if (!ep_check(api, api->KernelContext_GetInput(kernel, 0, &input), error) ||
      !ep_tensor_shape(api, input, dimensions, &rank, error) ||
      !ep_check(api, api->KernelContext_GetOutput(kernel, 0, dimensions, rank, &output), error) ||
      !ep_check(api, api->KernelContext_GetGPUComputeStream(kernel, &native), error)) {
    return false;
  }
  EpTensorView source;
  EpTensorView destination;
  if (!ep_tensor_view(context, input, "input 0", &source, error) ||
      !ep_tensor_view(context, output, "output 0", &destination, error)) {
    return false;
  }
  EpDriverStream* stream = NULL;
  if (native != NULL) {
    stream = ep_driver_stream_from_native(device->driver, native);
    if (stream == NULL) {
      /* Memory of the device is freed after the work of its own streams only. */
      return ep_fail(error, ORT_EP_FAIL,
                     "the run's stream %p is none of " EP_NAME "'s on the session's device (%s)",
                     native, device->info->name);
    }
  }
  ep_trace_copy(context, what, &destination, &source);
  return ep_tensor_copy(&destination, &source, stream, error);
}
