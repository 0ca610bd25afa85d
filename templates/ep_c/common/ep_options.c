#include "ep_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool ep_option_number(const char* key, const char* text, uint64_t most, uint64_t* value,
                             EpError* error) {
  char* end = NULL;
  errno = 0;
  *value = strtoull(text, &end, 0);
  return (errno == 0 && end != text && *end == '\0' && text[0] != '-' && *value <= most) ||
         ep_fail_argument(error, "additional_options: %s is '%s', not a number up to %" PRIu64, key,
                          text, most);
}

static bool ep_option_store(const EpOption* option, const char* text, void* values,
                            EpError* error) {
  static const uint64_t most[] = {
      [EP_OPTION_HANDLE] = UINTPTR_MAX, [EP_OPTION_INDEX] = UINT32_MAX, [EP_OPTION_FLAG] = 1};
  void* place = (char*)values + option->place;
  uint64_t value = 0;
  if (!ep_option_number(option->key, text, most[option->kind], &value, error)) {
    return false;
  }
  if (option->kind == EP_OPTION_HANDLE) {
    *(uintptr_t*)place = (uintptr_t)value;
    return value != 0 || ep_fail_argument(error, "additional_options: %s is null", option->key);
  }
  if (option->kind == EP_OPTION_INDEX) {
    *(uint32_t*)place = (uint32_t)value;
  } else {
    *(bool*)place = value != 0;
  }
  return true;
}

bool ep_options_read(const EpOption* options, const OrtApi* api, const OrtKeyValuePairs* pairs,
                     void* values, size_t* given, const char** absent, EpError* error) {
  *given = 0;
  *absent = NULL;
  for (; options->key != NULL; ++options) {
    const char* text = pairs == NULL ? NULL : api->GetKeyValue(pairs, options->key);
    if (text == NULL) {
      *absent = options->key;
    } else if (ep_option_store(options, text, values, error)) {
      ++*given;
    } else {
      return false;
    }
  }
  return true;
}
