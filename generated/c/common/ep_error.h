/*
 * Errors inside the EP. They become an OrtStatus only at the border to ONNX Runtime, so that no
 * path inside can leak one.
 */
#ifndef EP_ERROR_H_
#define EP_ERROR_H_

#include <stdbool.h>

#include "ort_interop_abi.h"

/** Bytes of a message, its terminator included; what is longer is cut. */
#define EP_ERROR_CAPACITY 480

#if defined(__MINGW32__)
#include <stdio.h>
#define EP_PRINTF(format_index, first_index) \
  __attribute__((format(__MINGW_PRINTF_FORMAT, format_index, first_index)))
#elif defined(__GNUC__)
#define EP_PRINTF(format_index, first_index) \
  __attribute__((format(printf, format_index, first_index)))
#else
#define EP_PRINTF(format_index, first_index)
#endif

/** The outcome of a call: `code` is ORT_OK, or says with `message` what went wrong. */
typedef struct EpError {
  OrtErrorCode code;
  char message[EP_ERROR_CAPACITY];
} EpError;

/** Makes `error` say that nothing went wrong. */
void ep_error_clear(EpError* error);

/** Writes `code` and the formatted message into `error`. @return false, always. */
bool ep_fail(EpError* error, OrtErrorCode code, const char* format, ...) EP_PRINTF(3, 4);

/** ep_fail() with ORT_INVALID_ARGUMENT. */
bool ep_fail_argument(EpError* error, const char* format, ...) EP_PRINTF(2, 3);

/** Writes that the process is short of memory. @return false, always. */
bool ep_out_of_memory(EpError* error);

/** Takes over `status` of a call to ONNX Runtime: its text goes to `error`, the status is
 *  released. @return true when `status` is null, which means success. */
bool ep_check(const OrtApi* api, OrtStatus* status, EpError* error);

/** The status that `error` stands for: null for ORT_OK, else a new one that the caller owns. */
OrtStatus* ep_status(const OrtApi* api, const EpError* error);

#endif /* EP_ERROR_H_ */
