#include "ep_error.h"

#include <stdarg.h>
#include <stdio.h>

#include "ep_config.h"

void ep_error_clear(EpError* error) {
  error->code = ORT_OK;
  error->message[0] = '\0';
}

static void ep_fail_va(EpError* error, OrtErrorCode code, const char* format, va_list arguments) {
  error->code = code;
  (void)vsnprintf(error->message, sizeof error->message, format, arguments);
}

bool ep_fail(EpError* error, OrtErrorCode code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  ep_fail_va(error, code, format, arguments);
  va_end(arguments);
  return false;
}

bool ep_fail_argument(EpError* error, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  ep_fail_va(error, ORT_INVALID_ARGUMENT, format, arguments);
  va_end(arguments);
  return false;
}

bool ep_out_of_memory(EpError* error) {
  return ep_fail(error, ORT_FAIL, EP_NAME ": out of memory");
}

bool ep_check(const OrtApi* api, OrtStatus* status, EpError* error) {
  if (status == NULL) {
    return true;
  }
  (void)ep_fail(error, api->GetErrorCode(status), "%s", api->GetErrorMessage(status));
  api->ReleaseStatus(status);
  return false;
}

OrtStatus* ep_status(const OrtApi* api, const EpError* error) {
  return error->code == ORT_OK ? NULL : api->CreateStatus(error->code, error->message);
}
