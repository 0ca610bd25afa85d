/* Memory and semaphores that the host driver imports; host_interop.h describes the exporter. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host_device.h"
#include "host_interop.h"

#ifdef __linux__
#include <sys/mman.h>
#include <sys/stat.h>
#endif

struct EpDriverMemory {
  EpRetirement retirement; /* First, so that one is found from the other. */
  EpDriverDevice* device;
  char* mapping; /* Null for a host allocation, which stays the application's. */
  size_t mapping_bytes;
  void* region;
};

struct EpDriverSemaphore {
  atomic_size_t references;
  OrtInteropHostSemaphore* shared;
};

/* Whatever ep_config.c lists for the platform can be imported. */
bool ep_driver_can_import_memory(EpDriverDevice* device, const EpHandleType* type) {
  (void)device;
  (void)type;
  return true;
}

bool ep_driver_can_import_semaphore(EpDriverDevice* device, const EpHandleType* type) {
  (void)device;
  (void)type;
  return true;
}

void* ep_driver_memory_address(const EpDriverMemory* memory) {
  return memory->region;
}

#ifdef __linux__

/* An fd that the exporter did not mark may hold anything; one that can shrink kills the reader. */
static bool host_check_fd(int fd, const char* mark, size_t bytes, EpError* error) {
  struct stat status;
  if (fstat(fd, &status) != 0) {
    return ep_fail(error, ORT_EP_FAIL, "native_handle: fstat failed: %s", strerror(errno));
  }
  int marked = ort_interop_host_is_marked(fd, mark);
  if (marked < 0) {
    return ep_fail(error, ORT_EP_FAIL,
                   "native_handle: its exporter cannot be told, /proc/self/fd is unreadable: %s",
                   strerror(errno));
  }
  if (marked == 0) {
    return ep_fail_argument(error,
                            "native_handle is not a memfd named '%s', so " EP_NAME
                            " cannot know what it holds; see host_interop.h",
                            mark);
  }
  int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return ep_fail_argument(error,
                            "native_handle is a memfd that can shrink while it is mapped; "
                            "seal it first: fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)");
  }
  if (status.st_size < 0 || (uintmax_t)status.st_size < bytes) {
    return ep_fail_argument(error,
                            "size_bytes is %zu, but the file behind native_handle has %jd "
                            "bytes",
                            bytes, (intmax_t)status.st_size);
  }
  return true;
}

static bool host_map_fd(EpDriverMemory* memory, const EpMemoryRequest* request, EpError* error) {
  int fd = request->native.fd;
  if (!host_check_fd(fd, ORT_INTEROP_HOST_MEMORY_NAME, request->size_bytes, error)) {
    return false;
  }
  void* mapping = mmap(NULL, request->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapping == MAP_FAILED) {
    return ep_fail(error, ORT_EP_FAIL, "native_handle: mmap of %zu bytes failed: %s",
                   request->size_bytes, strerror(errno));
  }
  memory->mapping = mapping;
  memory->mapping_bytes = request->size_bytes;
  memory->region = memory->mapping + request->offset_bytes;
  ep_fd_close(fd);
  return true;
}

static void host_memory_unmap(EpRetirement* retirement) {
  EpDriverMemory* memory = (EpDriverMemory*)retirement;
  (void)munmap(memory->mapping, memory->mapping_bytes);
  free(memory);
}

/* mincore fails on an unmapped page; what it says about the others does not matter. */
static bool host_is_mapped(void* address, size_t bytes) {
  unsigned char resident[4096];
  size_t step = sizeof resident * ep_page_size();
  for (size_t done = 0; done < bytes;) {
    size_t length = bytes - done < step ? bytes - done : step;
    if (mincore((char*)address + done, length, resident) != 0) {
      return false;
    }
    done += length;
  }
  return true;
}

#else

static bool host_map_fd(EpDriverMemory* memory, const EpMemoryRequest* request, EpError* error) {
  (void)memory;
  return ep_fail(error, ORT_NOT_IMPLEMENTED, EP_NAME " imports no %s on this platform",
                 request->type->name);
}

static void host_memory_unmap(EpRetirement* retirement) {
  free(retirement);
}

static bool host_is_mapped(void* address, size_t bytes) {
  const char* end = (const char*)address + bytes;
  for (const char* page = address; page < end;) {
    MEMORY_BASIC_INFORMATION info;
    if (VirtualQuery(page, &info, sizeof info) == 0 || info.State != MEM_COMMIT) {
      return false;
    }
    page = (const char*)info.BaseAddress + info.RegionSize;
  }
  return true;
}

#endif

bool ep_driver_import_memory(EpDriverDevice* device, const EpMemoryRequest* request,
                             EpDriverMemory** out, EpError* error) {
  *out = NULL;
  EpDriverMemory* memory = calloc(1, sizeof *memory);
  if (memory == NULL) {
    return ep_out_of_memory(error);
  }
  memory->device = device;
  bool good = true;
  if (request->type->kind == EP_NATIVE_FD) {
    good = host_map_fd(memory, request, error);
  } else if (host_is_mapped(request->native.address, request->size_bytes)) {
    memory->region = (char*)request->native.address + request->offset_bytes;
  } else {
    good = ep_fail_argument(error, "native_handle is %p, of which not all %zu bytes are mapped",
                            request->native.address, request->size_bytes);
  }
  if (!good) {
    free(memory);
    return false;
  }
  *out = memory;
  return true;
}

void ep_driver_memory_release(EpDriverMemory* memory) {
  if (memory->mapping == NULL) {
    free(memory);
  } else {
    ep_queues_retire(&memory->device->queues, &memory->retirement, host_memory_unmap);
  }
}

#ifdef __linux__

typedef struct HostSemaphoreTask {
  EpTask base;
  EpDriverSemaphore* semaphore;
  uint64_t value;
} HostSemaphoreTask;

bool ep_driver_import_semaphore(EpDriverDevice* device, const EpHandleType* type,
                                EpNativeHandle native, EpDriverSemaphore** out, EpError* error) {
  (void)device;
  (void)type;
  *out = NULL;
  if (!host_check_fd(native.fd, ORT_INTEROP_HOST_SEMAPHORE_NAME, sizeof(OrtInteropHostSemaphore),
                     error)) {
    return false;
  }
  EpDriverSemaphore* semaphore = malloc(sizeof *semaphore);
  if (semaphore == NULL) {
    return ep_out_of_memory(error);
  }
  atomic_init(&semaphore->references, 1);
  semaphore->shared = ort_interop_host_map_semaphore(native.fd);
  if (semaphore->shared == NULL) {
    int failure = errno;
    free(semaphore);
    return ep_fail(error, ORT_EP_FAIL, "native_handle does not hold a semaphore of version %u: %s",
                   ORT_INTEROP_HOST_SEMAPHORE_VERSION, strerror(failure));
  }
  ep_fd_close(native.fd);
  *out = semaphore;
  return true;
}

void ep_driver_semaphore_release(EpDriverSemaphore* semaphore) {
  if (atomic_fetch_sub_explicit(&semaphore->references, 1, memory_order_acq_rel) == 1) {
    ort_interop_host_unmap_semaphore(semaphore->shared);
    free(semaphore);
  }
}

static void host_semaphore_wait_run(EpQueue* queue, EpTask* base) {
  (void)queue;
  HostSemaphoreTask* task = (HostSemaphoreTask*)base;
  (void)ort_interop_host_wait(task->semaphore->shared, task->value, -1);
  ep_driver_semaphore_release(task->semaphore);
  free(task);
}

static void host_semaphore_signal_run(EpQueue* queue, EpTask* base) {
  HostSemaphoreTask* task = (HostSemaphoreTask*)base;
  EpError* error = &((EpDriverStream*)queue)->error;
  bool good = ort_interop_host_signal(task->semaphore->shared, task->value) == 0;
  ep_mutex_lock(&queue->mutex);
  if (!good && error->code == ORT_OK) {
    (void)ep_fail_argument(error, "value is %" PRIu64 ", but the semaphore is already at %" PRIu64,
                           task->value, ort_interop_host_semaphore_value(task->semaphore->shared));
  }
  ep_mutex_unlock(&queue->mutex);
  ep_driver_semaphore_release(task->semaphore);
  free(task);
}

static bool host_semaphore_push(EpDriverSemaphore* semaphore, EpDriverStream* stream,
                                uint64_t value, void (*run)(EpQueue*, EpTask*), EpError* error) {
  HostSemaphoreTask* task = malloc(sizeof *task);
  if (task == NULL) {
    return ep_out_of_memory(error);
  }
  atomic_fetch_add_explicit(&semaphore->references, 1, memory_order_relaxed);
  task->base.run = run;
  task->semaphore = semaphore;
  task->value = value;
  return ep_queue_add(&stream->queue, &task->base);
}

bool ep_driver_semaphore_wait(EpDriverSemaphore* semaphore, EpDriverStream* stream, uint64_t value,
                              EpError* error) {
  return host_semaphore_push(semaphore, stream, value, host_semaphore_wait_run, error);
}

bool ep_driver_semaphore_signal(EpDriverSemaphore* semaphore, EpDriverStream* stream,
                                uint64_t value, EpError* error) {
  return host_semaphore_push(semaphore, stream, value, host_semaphore_signal_run, error);
}

#else

bool ep_driver_import_semaphore(EpDriverDevice* device, const EpHandleType* type,
                                EpNativeHandle native, EpDriverSemaphore** out, EpError* error) {
  (void)device;
  (void)native;
  *out = NULL;
  return ep_fail(error, ORT_NOT_IMPLEMENTED, EP_NAME " imports no %s on this platform", type->name);
}

void ep_driver_semaphore_release(EpDriverSemaphore* semaphore) {
  (void)semaphore;
}

bool ep_driver_semaphore_wait(EpDriverSemaphore* semaphore, EpDriverStream* stream, uint64_t value,
                              EpError* error) {
  (void)semaphore;
  (void)stream;
  (void)value;
  return ep_fail(error, ORT_NOT_IMPLEMENTED, EP_NAME " has no semaphores on this platform");
}

bool ep_driver_semaphore_signal(EpDriverSemaphore* semaphore, EpDriverStream* stream,
                                uint64_t value, EpError* error) {
  return ep_driver_semaphore_wait(semaphore, stream, value, error);
}

#endif
