/* memfd, seals and futexes are Linux's own. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "host_interop.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ORT_INTEROP_HOST_NAME_CAPACITY 200
#define ORT_INTEROP_HOST_NS_PER_S 1000000000

static int close_with_errno(int fd) {
  int saved = errno;
  (void)close(fd);
  errno = saved;
  return -1;
}

static int create_marked(const char* mark, const char* label, size_t size) {
  if (size > (size_t)INT64_MAX) {
    errno = EFBIG;
    return -1;
  }
  char name[ORT_INTEROP_HOST_NAME_CAPACITY];
  (void)snprintf(name, sizeof name, "%s%s%s", mark, label == NULL ? "" : ":",
                 label == NULL ? "" : label);
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    return -1;
  }
  if (ftruncate(fd, (off_t)size) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    return close_with_errno(fd);
  }
  return fd;
}

int ort_interop_host_create_memory(const char* label, size_t size) {
  return create_marked(ORT_INTEROP_HOST_MEMORY_NAME, label, size);
}

int ort_interop_host_create_semaphore(const char* label, uint64_t value) {
  const OrtInteropHostSemaphore initial = {
      .magic = ORT_INTEROP_HOST_SEMAPHORE_MAGIC,
      .version = ORT_INTEROP_HOST_SEMAPHORE_VERSION,
      .value = value,
  };
  int fd = create_marked(ORT_INTEROP_HOST_SEMAPHORE_NAME, label, sizeof initial);
  if (fd >= 0 && pwrite(fd, &initial, sizeof initial, 0) != (ssize_t)sizeof initial) {
    return close_with_errno(fd);
  }
  return fd;
}

int ort_interop_host_is_marked(int fd, const char* name) {
  static const char prefix[] = "/memfd:";
  char link[48];
  char target[ORT_INTEROP_HOST_NAME_CAPACITY + 64];
  (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, target, sizeof target - 1);
  if (length < 0) {
    return -1;
  }
  target[length] = '\0';
  size_t name_length = strlen(name);
  const char* actual = target + sizeof prefix - 1;
  if (strncmp(target, prefix, sizeof prefix - 1) != 0 || strncmp(actual, name, name_length) != 0) {
    return 0;
  }
  char after = actual[name_length];
  return after == '\0' || after == ':' || after == ' ';
}

OrtInteropHostSemaphore* ort_interop_host_map_semaphore(int fd) {
  int marked = ort_interop_host_is_marked(fd, ORT_INTEROP_HOST_SEMAPHORE_NAME);
  if (marked < 0) {
    return NULL;
  }
  struct stat status;
  int seals = fcntl(fd, F_GET_SEALS);
  if (marked == 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &status) != 0 ||
      status.st_size < (off_t)sizeof(OrtInteropHostSemaphore)) {
    errno = EINVAL;
    return NULL;
  }
  OrtInteropHostSemaphore* semaphore =
      mmap(NULL, sizeof *semaphore, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (semaphore == MAP_FAILED) {
    return NULL;
  }
  if (semaphore->magic != ORT_INTEROP_HOST_SEMAPHORE_MAGIC ||
      semaphore->version != ORT_INTEROP_HOST_SEMAPHORE_VERSION) {
    ort_interop_host_unmap_semaphore(semaphore);
    errno = EINVAL;
    return NULL;
  }
  return semaphore;
}

void ort_interop_host_unmap_semaphore(OrtInteropHostSemaphore* semaphore) {
  if (semaphore != NULL) {
    (void)munmap(semaphore, sizeof *semaphore);
  }
}

uint64_t ort_interop_host_semaphore_value(const OrtInteropHostSemaphore* semaphore) {
  return __atomic_load_n(&semaphore->value, __ATOMIC_SEQ_CST);
}

int ort_interop_host_signal(OrtInteropHostSemaphore* semaphore, uint64_t value) {
  uint64_t current = ort_interop_host_semaphore_value(semaphore);
  do {
    if (current >= value) {
      errno = EINVAL;
      return -1;
    }
  } while (!__atomic_compare_exchange_n(&semaphore->value, &current, value, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST));
  (void)__atomic_fetch_add(&semaphore->sequence, 1u, __ATOMIC_SEQ_CST);
  (void)syscall(SYS_futex, &semaphore->sequence, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
  return 0;
}

/* CLOCK_MONOTONIC in nanoseconds. */
static int64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * ORT_INTEROP_HOST_NS_PER_S + now.tv_nsec;
}

int ort_interop_host_wait(OrtInteropHostSemaphore* semaphore, uint64_t value, int64_t timeout_ns) {
  int64_t start = timeout_ns < 0 ? 0 : now_ns();
  for (;;) {
    uint32_t sequence = __atomic_load_n(&semaphore->sequence, __ATOMIC_SEQ_CST);
    if (ort_interop_host_semaphore_value(semaphore) >= value) {
      return 0;
    }
    struct timespec left;
    const struct timespec* limit = NULL;
    if (timeout_ns >= 0) {
      int64_t remaining = timeout_ns - (now_ns() - start);
      if (remaining <= 0) {
        errno = ETIMEDOUT;
        return -1;
      }
      left.tv_sec = (time_t)(remaining / ORT_INTEROP_HOST_NS_PER_S);
      left.tv_nsec = (long)(remaining % ORT_INTEROP_HOST_NS_PER_S);
      limit = &left;
    }
    /* A change since `sequence` was read, a signal and a timeout all lead back to the checks. */
    (void)syscall(SYS_futex, &semaphore->sequence, FUTEX_WAIT, sequence, limit, NULL, 0);
  }
}

#else

/* ISO C wants a declaration in every file. */
typedef int OrtInteropHostNotOnThisPlatform;

#endif /* __linux__ */
