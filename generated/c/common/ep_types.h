/* Sizes of tensor elements. */
#ifndef EP_TYPES_H_
#define EP_TYPES_H_

#include <stddef.h>
#include <stdint.h>

#include "ort_interop_abi.h"

/** One more than the highest element type that the EP knows. */
#define EP_ELEMENT_TYPE_COUNT 27

/** Bits of an element of `type`, 0 for strings, undefined and unknown types. */
unsigned ep_element_bits(ONNXTensorElementDataType type);

/** Bytes that the address of an element of `type` must be a multiple of; 0 as above. */
size_t ep_element_alignment(ONNXTensorElementDataType type);

#endif /* EP_TYPES_H_ */
