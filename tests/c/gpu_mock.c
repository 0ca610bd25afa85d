#define _GNU_SOURCE
#include "gpu_mock.h"

#include <dlfcn.h>
#include <stdatomic.h>

static void find(void* library, const char* name, void* slot) {
  void* found = dlsym(library, name);
  CHECK(found != NULL);
  memcpy(slot, &found, sizeof found);
}

Mock mock_open(void) {
  void* library = dlopen(MOCK_FILE, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  Mock mock;
  find(library, "mock_call_count", &mock.call_count);
  find(library, "mock_call", &mock.call);
  find(library, "mock_forget_calls", &mock.forget_calls);
  find(library, "mock_set_recording", &mock.set_recording);
  find(library, "mock_fail", &mock.fail);
  find(library, "mock_failed_function", &mock.failed_function);
  find(library, "mock_live", &mock.live);
  find(library, "mock_context_balance", &mock.context_balance);
  find(library, "mock_offence_count", &mock.offence_count);
  find(library, "mock_offence", &mock.offence);
  find(library, "mock_set_option", &mock.set_option);
  find(library, "mock_export_memory", &mock.export_memory);
  find(library, "mock_export_semaphore", &mock.export_semaphore);
  find(library, "mock_map", &mock.map);
  find(library, "mock_unmap", &mock.unmap);
  find(library, "mock_close", &mock.close);
  return mock;
}

void mock_check(const Mock* mock) {
  for (size_t i = 0; i < mock->offence_count(); ++i) {
    fprintf(stderr, "offence: %s\n", mock->offence(i));
  }
  CHECK(mock->offence_count() == 0);
  /* A thread of the EP that has just released the last object still has its context current. */
  for (int i = 0; i < 5000 && mock->context_balance() != 0; ++i) {
    client_sleep_ms(1);
  }
  CHECK(mock->context_balance() == 0);
}

void mock_settle(const Mock* mock, size_t contexts) {
  for (int i = 0; i < 5000 && mock->live(NULL) != contexts; ++i) {
    client_sleep_ms(1);
  }
  if (mock->live(NULL) != contexts || mock->live("context") != contexts) {
    static const char* const kinds[] = {"context",        "memory",       "freed memory",
                                        "pool",           "mapping",      "external memory",
                                        "stream",         "event",        "external semaphore",
                                        "host memory",    "registration", "instance",
                                        "device",         "buffer",       "command pool",
                                        "command buffer", "semaphore"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
      fprintf(stderr, "alive: %zu %s\n", mock->live(kinds[i]), kinds[i]);
    }
    exit(1);
  }
}

void mock_settle_imports(const Mock* mock) {
  double end = client_now_ms() + 60000;
  while (mock->live("external memory") + mock->live("external semaphore") > 0) {
    CHECK(client_now_ms() < end);
    client_sleep_ms(1);
  }
}

uint64_t semaphore_value(const void* mapped) {
  return atomic_load((const _Atomic uint64_t*)mapped);
}

void semaphore_set(void* mapped, uint64_t value) {
  atomic_store((_Atomic uint64_t*)mapped, value);
}

OrtSyncStream* client_stream(const Client* client) {
  OrtSyncStream* stream = NULL;
  OK(client, client->api->CreateSyncStreamForEpDevice(client->device, NULL, &stream));
  CHECK(stream != NULL);
  return stream;
}
