#include "exporter.h"
#include "host_interop.h"

int exporter_memory(size_t bytes) {
  return ort_interop_host_create_memory("test", bytes);
}

int exporter_semaphore(uint64_t value) {
  return ort_interop_host_create_semaphore("test", value);
}

void* exporter_map(int semaphore_fd) {
  return ort_interop_host_map_semaphore(semaphore_fd);
}

void exporter_unmap(void* semaphore) {
  ort_interop_host_unmap_semaphore(semaphore);
}

uint64_t exporter_value(void* semaphore) {
  return ort_interop_host_semaphore_value(semaphore);
}

void exporter_signal(void* semaphore, uint64_t value) {
  CHECK(ort_interop_host_signal(semaphore, value) == 0);
}

bool exporter_wait(void* semaphore, uint64_t value) {
  return ort_interop_host_wait(semaphore, value, 60000000000) == 0;
}

size_t exporter_driver_calls(void) {
  return 0;
}

void exporter_forget_calls(void) {}

void exporter_settle(void) {}

void exporter_check(void) {}
