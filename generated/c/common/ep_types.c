#include "ep_types.h"

/* By number, as the headers of the older releases lack the newest names. */
typedef struct EpElementLayout {
  uint8_t bits;
  uint8_t alignment;
} EpElementLayout;

static const EpElementLayout ep_element_layouts[EP_ELEMENT_TYPE_COUNT] = {
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT] = {32, 4},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8] = {8, 1},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8] = {8, 1},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16] = {16, 2},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16] = {16, 2},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32] = {32, 4},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64] = {64, 8},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL] = {8, 1},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16] = {16, 2},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE] = {64, 8},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32] = {32, 4},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64] = {64, 8},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64] = {64, 4},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128] = {128, 8},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16] = {16, 2},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN] = {8, 1},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ] = {8, 1},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2] = {8, 1},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ] = {8, 1},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4] = {4, 1},
    [ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4] = {4, 1},
    [23] = {4, 1}, /* FLOAT4E2M1 */
    [24] = {2, 1}, /* UINT2 */
    [25] = {2, 1}, /* INT2 */
    [26] = {8, 1}, /* FLOAT8E8M0 */
};

static EpElementLayout ep_element_layout(ONNXTensorElementDataType type) {
  static const EpElementLayout none = {0, 0};
  return (size_t)type < EP_ELEMENT_TYPE_COUNT ? ep_element_layouts[type] : none;
}

unsigned ep_element_bits(ONNXTensorElementDataType type) {
  return ep_element_layout(type).bits;
}

size_t ep_element_alignment(ONNXTensorElementDataType type) {
  return ep_element_layout(type).alignment;
}
