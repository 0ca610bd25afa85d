#include "ep_identity.h"

#include <stdlib.h>
#include <string.h>

#include "ep_config.h"
#include "ep_tensor.h"
#include "ep_types.h"

typedef struct EpIdentity {
  OrtNodeComputeInfo base;
  EpDevice* device;
} EpIdentity;

static bool ep_is_free_identity(const OrtApi* api, const OrtNode* node, bool* is, EpError* error) {
  const char* type = NULL;
  const char* domain = NULL;
  const char* ep_name = NULL;
  size_t inputs = 0;
  size_t outputs = 0;
  if (!ep_check(api, api->Node_GetOperatorType(node, &type), error) ||
      !ep_check(api, api->Node_GetDomain(node, &domain), error) ||
      !ep_check(api, api->Node_GetEpName(node, &ep_name), error) ||
      !ep_check(api, api->Node_GetNumInputs(node, &inputs), error) ||
      !ep_check(api, api->Node_GetNumOutputs(node, &outputs), error)) {
    return false;
  }
  bool own_domain = domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0;
  bool unassigned = ep_name == NULL || ep_name[0] == '\0' || strcmp(ep_name, EP_NAME) == 0;
  *is = strcmp(type, "Identity") == 0 && own_domain && unassigned && inputs == 1 && outputs == 1;
  return true;
}

bool ep_identity_supports(const OrtApi* api, const OrtNode* node, bool* supported, EpError* error) {
  bool candidate = false;
  *supported = false;
  if (!ep_is_free_identity(api, node, &candidate, error) || !candidate) {
    return error->code == ORT_OK;
  }
  const OrtValueInfo* input = NULL;
  const OrtTypeInfo* type = NULL;
  enum ONNXType kind = ONNX_TYPE_UNKNOWN;
  if (!ep_check(api, api->Node_GetInputs(node, &input, 1), error) ||
      !ep_check(api, api->GetValueInfoTypeInfo(input, &type), error) ||
      !ep_check(api, api->GetOnnxTypeFromTypeInfo(type, &kind), error) ||
      kind != ONNX_TYPE_TENSOR) {
    return error->code == ORT_OK;
  }
  const OrtTensorTypeAndShapeInfo* tensor = NULL;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  if (!ep_check(api, api->CastTypeInfoToTensorInfo(type, &tensor), error) || tensor == NULL ||
      !ep_check(api, api->GetTensorElementType(tensor, &element), error)) {
    return error->code == ORT_OK;
  }
  *supported = ep_element_bits(element) != 0;
  return true;
}

static OrtStatus* ORT_API_CALL ep_identity_create_state(OrtNodeComputeInfo* base,
                                                        OrtNodeComputeContext* compute_context,
                                                        void** state) {
  (void)compute_context;
  *state = base;
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_identity_compute(OrtNodeComputeInfo* base, void* state,
                                                   OrtKernelContext* kernel) {
  (void)state;
  EpDevice* device = ((EpIdentity*)base)->device;
  EpError error;
  ep_error_clear(&error);
  (void)ep_tensor_copy_through(device, kernel, "Identity", &error);
  return ep_status(device->context->api, &error);
}

static void ORT_API_CALL ep_identity_release_state(OrtNodeComputeInfo* base, void* state) {
  (void)base;
  (void)state;
}

OrtNodeComputeInfo* ep_identity_create(EpDevice* device, EpError* error) {
  EpIdentity* identity = calloc(1, sizeof *identity);
  if (identity == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  identity->device = device;
  identity->base.ort_version_supported = device->context->stamp;
  identity->base.CreateState = ep_identity_create_state;
  identity->base.Compute = ep_identity_compute;
  identity->base.ReleaseState = ep_identity_release_state;
  return &identity->base;
}

void ep_identity_release(OrtNodeComputeInfo* info) {
  free(info);
}
