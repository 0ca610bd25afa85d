#include "mock_record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ep_platform.h"

#define MOCK_OPTION_CAPACITY 32

typedef struct MockLines {
  char** lines;
  size_t count;
  size_t capacity;
} MockLines;

typedef struct MockObject {
  struct MockObject* next;
  const char* kind;
  const void* object;
  size_t bytes;
} MockObject;

typedef struct MockOption {
  char name[48];
  long value;
} MockOption;

/* Everything below belongs to the library, and is guarded by the mutex. */
static struct {
  EpMutex mutex;
  MockLines calls;
  MockLines offences;
  MockObject* objects;
  MockOption options[MOCK_OPTION_CAPACITY];
  size_t option_count;
  FILE* log;
  bool recording;
  char failing[64];
  bool failing_any;
  unsigned failing_in;
  int failing_result;
  const char* failed;
  long contexts;
} mock;

static void mock_read_options(const char* text) {
  while (text != NULL && *text != '\0') {
    char name[sizeof mock.options[0].name];
    long value = 0;
    if (sscanf(text, "%47[^=]=%ld", name, &value) == 2) {
      mock_set_option(name, value);
    }
    const char* comma = strchr(text, ',');
    text = comma == NULL ? NULL : comma + 1;
  }
}

static void mock_read_environment(void) {
  mock_read_options(getenv("MOCK_DRIVER_OPTIONS"));
  const char* fail = getenv("MOCK_DRIVER_FAIL");
  char function[sizeof mock.failing];
  unsigned nth = 0;
  int result = 0;
  if (fail != NULL && sscanf(fail, "%63[^:]:%u:%d", function, &nth, &result) == 3) {
    mock_fail(function, nth, result);
  }
  const char* record = getenv("MOCK_DRIVER_RECORD");
  mock_set_recording(record == NULL || strcmp(record, "0") != 0);
  const char* log = getenv("MOCK_DRIVER_LOG");
  if (log != NULL) {
    mock.log = fopen(log, "a");
  }
}

static void mock_lines_forget(MockLines* lines) {
  for (size_t i = 0; i < lines->count; ++i) {
    free(lines->lines[i]);
  }
  free(lines->lines);
  *lines = (MockLines){0};
}

__attribute__((constructor)) static void mock_start(void) {
  ep_mutex_init(&mock.mutex);
  mock_read_environment();
}

__attribute__((destructor)) static void mock_stop(void) {
  if (mock.log != NULL) {
    (void)fclose(mock.log);
    mock.log = NULL;
  }
  mock_lines_forget(&mock.calls);
  mock_lines_forget(&mock.offences);
}

/* The mutex is held. */
static void mock_lines_add(MockLines* lines, const char* text) {
  if (lines->count == lines->capacity) {
    size_t capacity = lines->capacity == 0 ? 64 : 2 * lines->capacity;
    char** larger = realloc(lines->lines, capacity * sizeof *larger);
    if (larger == NULL) {
      abort();
    }
    lines->lines = larger;
    lines->capacity = capacity;
  }
  size_t bytes = strlen(text) + 1;
  char* copy = malloc(bytes);
  if (copy == NULL) {
    abort();
  }
  memcpy(copy, text, bytes);
  lines->lines[lines->count++] = copy;
  if (mock.log != NULL) {
    fprintf(mock.log, "%s\n", text);
    fflush(mock.log);
  }
}

static size_t mock_lines_count(const MockLines* lines) {
  ep_mutex_lock(&mock.mutex);
  size_t count = lines->count;
  ep_mutex_unlock(&mock.mutex);
  return count;
}

static const char* mock_lines_get(const MockLines* lines, size_t index) {
  ep_mutex_lock(&mock.mutex);
  const char* text = index < lines->count ? lines->lines[index] : NULL;
  ep_mutex_unlock(&mock.mutex);
  return text;
}

size_t mock_call_count(void) {
  return mock_lines_count(&mock.calls);
}

const char* mock_call(size_t index) {
  return mock_lines_get(&mock.calls, index);
}

void mock_forget_calls(void) {
  ep_mutex_lock(&mock.mutex);
  mock_lines_forget(&mock.calls);
  ep_mutex_unlock(&mock.mutex);
}

void mock_set_recording(bool on) {
  ep_mutex_lock(&mock.mutex);
  mock.recording = on;
  ep_mutex_unlock(&mock.mutex);
}

size_t mock_offence_count(void) {
  return mock_lines_count(&mock.offences);
}

const char* mock_offence(size_t index) {
  return mock_lines_get(&mock.offences, index);
}

void mock_offend(const char* format, ...) {
  char text[MOCK_CALL_CAPACITY];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  ep_mutex_lock(&mock.mutex);
  mock_lines_add(&mock.offences, text);
  ep_mutex_unlock(&mock.mutex);
}

void mock_fail(const char* function, unsigned nth, int result) {
  ep_mutex_lock(&mock.mutex);
  mock.failing_any = function == NULL;
  (void)snprintf(mock.failing, sizeof mock.failing, "%s", function == NULL ? "" : function);
  mock.failing_in = nth;
  mock.failing_result = result;
  mock.failed = NULL;
  ep_mutex_unlock(&mock.mutex);
}

const char* mock_failed_function(void) {
  ep_mutex_lock(&mock.mutex);
  const char* failed = mock.failed;
  ep_mutex_unlock(&mock.mutex);
  return failed;
}

bool mock_is_to_fail(const MockCall* call, int* result) {
  bool fails = false;
  ep_mutex_lock(&mock.mutex);
  if (mock.failing_in > 0 && (mock.failing_any || strcmp(mock.failing, call->function) == 0)) {
    fails = --mock.failing_in == 0;
    *result = mock.failing_result;
    mock.failed = fails ? call->function : mock.failed;
  }
  ep_mutex_unlock(&mock.mutex);
  return fails;
}

static void mock_append(MockCall* call, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t room = sizeof call->text - call->length;
  int length = vsnprintf(call->text + call->length, room, format, arguments);
  va_end(arguments);
  if (length > 0) {
    call->length += (size_t)length < room ? (size_t)length : room - 1;
  }
}

void mock_begin(MockCall* call, const char* function) {
  call->function = function;
  call->length = 0;
  mock_append(call, "%s(", function);
}

static void mock_separate(MockCall* call) {
  if (call->text[call->length - 1] != '(') {
    mock_append(call, ", ");
  }
}

void mock_argument_signed(MockCall* call, const char* name, long long value) {
  mock_separate(call);
  mock_append(call, "%s=%lld", name, value);
}

void mock_argument_address(MockCall* call, const char* name, uint64_t value) {
  mock_separate(call);
  mock_append(call, "%s=0x%" PRIx64, name, value);
}

void mock_end(MockCall* call, long long result) {
  mock_append(call, ") = %lld", result);
  ep_mutex_lock(&mock.mutex);
  if (mock.recording) {
    mock_lines_add(&mock.calls, call->text);
  }
  ep_mutex_unlock(&mock.mutex);
}

void mock_set_option(const char* name, long value) {
  ep_mutex_lock(&mock.mutex);
  size_t i = 0;
  while (i < mock.option_count && strcmp(mock.options[i].name, name) != 0) {
    ++i;
  }
  if (i < MOCK_OPTION_CAPACITY) {
    (void)snprintf(mock.options[i].name, sizeof mock.options[i].name, "%s", name);
    mock.options[i].value = value;
    mock.option_count = i < mock.option_count ? mock.option_count : i + 1;
  }
  ep_mutex_unlock(&mock.mutex);
}

long mock_option(const char* name, long otherwise) {
  long value = otherwise;
  ep_mutex_lock(&mock.mutex);
  for (size_t i = 0; i < mock.option_count; ++i) {
    if (strcmp(mock.options[i].name, name) == 0) {
      value = mock.options[i].value;
    }
  }
  ep_mutex_unlock(&mock.mutex);
  return value;
}

void mock_count_context(long change) {
  ep_mutex_lock(&mock.mutex);
  mock.contexts += change;
  ep_mutex_unlock(&mock.mutex);
}

long mock_context_balance(void) {
  ep_mutex_lock(&mock.mutex);
  long balance = mock.contexts;
  ep_mutex_unlock(&mock.mutex);
  return balance;
}

void mock_object_add(const char* kind, const void* object, size_t bytes) {
  MockObject* added = malloc(sizeof *added);
  if (added == NULL) {
    abort();
  }
  ep_mutex_lock(&mock.mutex);
  *added = (MockObject){mock.objects, kind, object, bytes};
  mock.objects = added;
  ep_mutex_unlock(&mock.mutex);
}

bool mock_object_find(const char* kind, const void* object, size_t* bytes) {
  ep_mutex_lock(&mock.mutex);
  MockObject* found = mock.objects;
  while (found != NULL && (found->object != object || strcmp(found->kind, kind) != 0)) {
    found = found->next;
  }
  if (found != NULL && bytes != NULL) {
    *bytes = found->bytes;
  }
  ep_mutex_unlock(&mock.mutex);
  return found != NULL;
}

bool mock_object_contains(const char* kind, const void* address) {
  ep_mutex_lock(&mock.mutex);
  MockObject* found = mock.objects;
  while (found != NULL && (strcmp(found->kind, kind) != 0 ||
                           (uintptr_t)address - (uintptr_t)found->object >= found->bytes)) {
    found = found->next;
  }
  ep_mutex_unlock(&mock.mutex);
  return found != NULL;
}

bool mock_object_remove(const char* kind, const void* object) {
  ep_mutex_lock(&mock.mutex);
  MockObject** link = &mock.objects;
  while (*link != NULL && ((*link)->object != object || strcmp((*link)->kind, kind) != 0)) {
    link = &(*link)->next;
  }
  MockObject* found = *link;
  if (found != NULL) {
    *link = found->next;
  }
  ep_mutex_unlock(&mock.mutex);
  free(found);
  if (found == NULL) {
    mock_offend("%s %p is released, but is not alive", kind, object);
  }
  return found != NULL;
}

size_t mock_live(const char* kind) {
  size_t count = 0;
  ep_mutex_lock(&mock.mutex);
  for (const MockObject* object = mock.objects; object != NULL; object = object->next) {
    count += kind == NULL || strcmp(object->kind, kind) == 0;
  }
  ep_mutex_unlock(&mock.mutex);
  return count;
}
