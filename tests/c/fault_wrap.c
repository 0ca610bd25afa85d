/*
 * Linked into the EP with --wrap: each call that can fail asks the test program, by the function
 * `ep_test_should_fail` of it, whether it shall.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
int __real_posix_memalign(void** memory, size_t alignment, size_t bytes);
void* __real_mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_fcntl(int fd, int command, ...);
int __real_fstat(int fd, struct stat* status);
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                          void* argument);

void* __wrap_malloc(size_t bytes);
void* __wrap_calloc(size_t count, size_t bytes);
int __wrap_posix_memalign(void** memory, size_t alignment, size_t bytes);
void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fstat(int fd, struct stat* status);
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                          void* argument);

static bool should_fail(const char* what) {
  static bool (*ask)(const char*);
  if (ask == NULL) {
    *(void**)&ask = dlsym(RTLD_DEFAULT, "ep_test_should_fail");
  }
  return ask != NULL && ask(what);
}

void* __wrap_malloc(size_t bytes) {
  return should_fail("malloc") ? NULL : __real_malloc(bytes);
}

void* __wrap_calloc(size_t count, size_t bytes) {
  return should_fail("calloc") ? NULL : __real_calloc(count, bytes);
}

int __wrap_posix_memalign(void** memory, size_t alignment, size_t bytes) {
  return should_fail("posix_memalign") ? ENOMEM : __real_posix_memalign(memory, alignment, bytes);
}

void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (should_fail("mmap")) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return __real_mmap(address, bytes, protection, flags, fd, offset);
}

int __wrap_fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  int argument = va_arg(arguments, int);
  va_end(arguments);
  if (should_fail("fcntl")) {
    errno = EMFILE;
    return -1;
  }
  return __real_fcntl(fd, command, argument);
}

int __wrap_fstat(int fd, struct stat* status) {
  if (should_fail("fstat")) {
    errno = EIO;
    return -1;
  }
  return __real_fstat(fd, status);
}

int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                          void* argument) {
  return should_fail("pthread_create") ? EAGAIN
                                       : __real_pthread_create(thread, attributes, run, argument);
}
