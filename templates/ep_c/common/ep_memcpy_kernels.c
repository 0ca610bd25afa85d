#include "ep_memcpy_kernels.h"

#include <stdlib.h>

#include "ep_config.h"
#include "ep_tensor.h"
#include "ep_types.h"

typedef struct EpMemcpyKernel {
  OrtKernelImpl base;
  EpDevice* device;
} EpMemcpyKernel;

static OrtStatus* ORT_API_CALL ep_memcpy_compute(OrtKernelImpl* base, OrtKernelContext* kernel) {
  EpDevice* device = ((EpMemcpyKernel*)base)->device;
  EpError error;
  ep_error_clear(&error);
  (void)ep_tensor_copy_through(device, kernel, "Memcpy", &error);
  return ep_status(device->context->api, &error);
}

static void ORT_API_CALL ep_memcpy_release(OrtKernelImpl* base) {
  free(base);
}

static OrtStatus* ORT_API_CALL ep_memcpy_create(void* state, const OrtKernelInfo* info,
                                                OrtKernelImpl** out) {
  (void)info;
  EpDevice* device = state;
  EpError error;
  ep_error_clear(&error);
  *out = NULL;
  EpMemcpyKernel* kernel = calloc(1, sizeof *kernel);
  if (kernel == NULL) {
    (void)ep_out_of_memory(&error);
    return ep_status(device->context->api, &error);
  }
  kernel->device = device;
  kernel->base.ort_version_supported = device->context->stamp;
  kernel->base.Compute = ep_memcpy_compute;
  kernel->base.Release = ep_memcpy_release;
  *out = &kernel->base;
  return NULL;
}

/* The element types that this host has and that have a fixed size; returns how many. */
static size_t ep_fixed_size_types(EpContext* context, const OrtDataType** types) {
  size_t count = 0;
  for (size_t i = 0; i < EP_ELEMENT_TYPE_COUNT; ++i) {
    ONNXTensorElementDataType element = (ONNXTensorElementDataType)i;
    EpError unknown_to_host;
    ep_error_clear(&unknown_to_host);
    if (ep_element_bits(element) != 0 &&
        ep_check(context->api, context->ep_api->GetTensorDataType(element, &types[count]),
                 &unknown_to_host)) {
      ++count;
    }
  }
  return count;
}

static bool ep_memcpy_define(EpContext* context, OrtKernelDefBuilder* builder, const char* type,
                             bool from_host, EpError* error) {
  const OrtApi* api = context->api;
  const OrtEpApi* ep_api = context->ep_api;
  const OrtDataType* types[EP_ELEMENT_TYPE_COUNT] = {NULL};
  size_t type_count = ep_fixed_size_types(context, types);
  OrtStatus* memory_type =
      from_host ? ep_api->KernelDefBuilder_SetInputMemType(builder, 0, OrtMemTypeCPUInput)
                : ep_api->KernelDefBuilder_SetOutputMemType(builder, 0, OrtMemTypeCPUOutput);
  return ep_check(api, memory_type, error) &&
         ep_check(api, ep_api->KernelDefBuilder_SetOperatorType(builder, type), error) &&
         ep_check(api, ep_api->KernelDefBuilder_SetDomain(builder, ""), error) &&
         ep_check(api, ep_api->KernelDefBuilder_SetSinceVersion(builder, 1, 1), error) &&
         ep_check(api, ep_api->KernelDefBuilder_SetExecutionProvider(builder, EP_NAME), error) &&
         ep_check(api, ep_api->KernelDefBuilder_AddTypeConstraint(builder, "T", types, type_count),
                  error);
}

static bool ep_memcpy_add(EpDevice* device, OrtKernelRegistry* registry, const char* type,
                          bool from_host, EpError* error) {
  const OrtApi* api = device->context->api;
  const OrtEpApi* ep_api = device->context->ep_api;
  OrtKernelDefBuilder* builder = NULL;
  OrtKernelDef* definition = NULL;
  if (!ep_check(api, ep_api->CreateKernelDefBuilder(&builder), error)) {
    return false;
  }
  bool good = ep_memcpy_define(device->context, builder, type, from_host, error) &&
              ep_check(api, ep_api->KernelDefBuilder_Build(builder, &definition), error);
  ep_api->ReleaseKernelDefBuilder(builder);
  if (!good) {
    return false;
  }
  good = ep_check(
      api, ep_api->KernelRegistry_AddKernel(registry, definition, ep_memcpy_create, device), error);
  ep_api->ReleaseKernelDef(definition);
  return good;
}

bool ep_memcpy_kernels_create(EpDevice* device, OrtKernelRegistry** registry, EpError* error) {
  const OrtEpApi* ep_api = device->context->ep_api;
  *registry = NULL;
  if (!ep_check(device->context->api, ep_api->CreateKernelRegistry(registry), error)) {
    return false;
  }
  if (!ep_memcpy_add(device, *registry, "MemcpyFromHost", true, error) ||
      !ep_memcpy_add(device, *registry, "MemcpyToHost", false, error)) {
    ep_api->ReleaseKernelRegistry(*registry);
    *registry = NULL;
    return false;
  }
  return true;
}
