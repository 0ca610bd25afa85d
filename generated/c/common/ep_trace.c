#include "ep_trace.h"

#include <stdio.h>

#include "ep_config.h"

#ifdef _WIN32
#define EP_FILE L"ep_trace.c"
#else
#define EP_FILE "ep_trace.c"
#endif

void ep_trace_copy(const EpContext* context, const char* what, const EpTensorView* destination,
                   const EpTensorView* source) {
  const OrtApi* api = context->api;
  OrtLoggingLevel level = ORT_LOGGING_LEVEL_FATAL;
  EpError ignored;
  ep_error_clear(&ignored);
  if (context->logger == NULL ||
      !ep_check(api, api->Logger_GetLoggingSeverityLevel(context->logger, &level), &ignored) ||
      level != ORT_LOGGING_LEVEL_VERBOSE) {
    return;
  }
  char message[256];
  (void)snprintf(message, sizeof message, EP_NAME ": %s: %zu bytes from %p (%s) to %p (%s)%s", what,
                 source->bytes, source->data, source->device != NULL ? "device" : "host",
                 destination->data, destination->device != NULL ? "device" : "host",
                 source->data == destination->data ? ", in place" : "");
  /* A log that fails must not fail the run. */
  (void)ep_check(api,
                 api->Logger_LogMessage(context->logger, ORT_LOGGING_LEVEL_VERBOSE, message,
                                        EP_FILE, __LINE__, __func__),
                 &ignored);
}
