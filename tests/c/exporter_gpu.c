#include "exporter.h"
#include "gpu_mock.h"

#define SEMAPHORE_BYTES 8

#ifndef MOCK_CONTEXTS_LEFT
/* How many contexts are still alive, and current, when the EP is gone. */
#define MOCK_CONTEXTS_LEFT 0
#endif

/* The mock is one library, whoever opens it. */
static const Mock* exporter_mock(void) {
  static Mock mock;
  static bool opened;
  if (!opened) {
    mock = mock_open();
    opened = true;
  }
  return &mock;
}

int exporter_memory(size_t bytes) {
  return (int)exporter_mock()->export_memory(bytes);
}

int exporter_semaphore(uint64_t value) {
  int fd = (int)exporter_mock()->export_semaphore();
  void* semaphore = exporter_map(fd);
  CHECK(semaphore != NULL);
  semaphore_set(semaphore, value);
  exporter_unmap(semaphore);
  return fd;
}

void* exporter_map(int semaphore_fd) {
  return exporter_mock()->map(semaphore_fd, SEMAPHORE_BYTES);
}

void exporter_unmap(void* semaphore) {
  exporter_mock()->unmap(semaphore, SEMAPHORE_BYTES);
}

uint64_t exporter_value(void* semaphore) {
  return semaphore_value(semaphore);
}

void exporter_signal(void* semaphore, uint64_t value) {
  semaphore_set(semaphore, value);
}

bool exporter_wait(void* semaphore, uint64_t value) {
  double end = client_now_ms() + 60000;
  while (semaphore_value(semaphore) < value && client_now_ms() < end) {
    client_sleep_ms(0);
  }
  return semaphore_value(semaphore) >= value;
}

size_t exporter_driver_calls(void) {
  return exporter_mock()->call_count();
}

void exporter_forget_calls(void) {
  exporter_mock()->set_recording(false);
  exporter_mock()->forget_calls();
}

void exporter_settle(void) {
  mock_settle_imports(exporter_mock());
}

void exporter_check(void) {
  mock_settle(exporter_mock(), MOCK_CONTEXTS_LEFT);
  if (MOCK_CONTEXTS_LEFT == 0) {
    mock_check(exporter_mock());
  }
  CHECK(exporter_mock()->offence_count() == 0);
}
