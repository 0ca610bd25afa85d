/*
 * The side of an application that exports memory and semaphores to the host EP (Linux).
 *
 * An opaque file descriptor says nothing about what is behind it, so the EP imports only ones that
 * carry the mark of this header:
 *
 *  - Memory is a memfd whose name is ORT_INTEROP_HOST_MEMORY_NAME, alone or followed by ':' and a
 *    label. Byte 0 of the file is byte 0 of the allocation. It carries the seal F_SEAL_SHRINK: with
 *    a file that can shrink, the process that reads it dies by SIGBUS.
 *  - A timeline semaphore is a memfd whose name is ORT_INTEROP_HOST_SEMAPHORE_NAME, alone or with a
 *    label, also sealed against shrinking, that starts with an OrtInteropHostSemaphore.
 *
 * What the name says is the exporter's promise. The import type is the opaque-fd one for both
 * (ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD and
 * ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD); the descriptor stays the application's.
 *
 * To raise a semaphore from a language without these functions: store the larger value to `value`
 * (8 bytes, atomically), add one to `sequence` (4 bytes, atomically), then call
 * futex(&sequence, FUTEX_WAKE, INT_MAX). The futex is not a private one.
 */
#ifndef ORT_INTEROP_HOST_INTEROP_H_
#define ORT_INTEROP_HOST_INTEROP_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Name of a memfd that holds memory. */
#define ORT_INTEROP_HOST_MEMORY_NAME "ort-interop-memory"
/** Name of a memfd that holds a semaphore. */
#define ORT_INTEROP_HOST_SEMAPHORE_NAME "ort-interop-semaphore"
/** First field of a semaphore: "ORTISEM" and a zero byte, as a little-endian number. */
#define ORT_INTEROP_HOST_SEMAPHORE_MAGIC UINT64_C(0x004d45534954524f)
/** Second field: the layout of what follows. */
#define ORT_INTEROP_HOST_SEMAPHORE_VERSION 1u

/** The start of a semaphore's file, shared by all processes that know the semaphore. */
typedef struct OrtInteropHostSemaphore {
  uint64_t magic;    /**< ORT_INTEROP_HOST_SEMAPHORE_MAGIC */
  uint32_t version;  /**< ORT_INTEROP_HOST_SEMAPHORE_VERSION */
  uint32_t sequence; /**< The futex: grows by one with every change of `value`. */
  uint64_t value;    /**< The timeline; it only grows. */
} OrtInteropHostSemaphore;

/** A memfd of `size` bytes of zeros, ready for import. `label` is for humans, and may be null.
 *  The caller closes it. Returns -1 with errno set on failure. */
int ort_interop_host_create_memory(const char* label, size_t size);

/** A memfd with a semaphore that stands at `value`. The caller closes it. Returns -1 with errno set
 *  on failure. */
int ort_interop_host_create_semaphore(const char* label, uint64_t value);

/** Whether `fd` carries the mark `name` (one of the two above): 1 yes, 0 no, -1 with errno set when
 *  that cannot be found out, as without /proc. */
int ort_interop_host_is_marked(int fd, const char* name);

/** Maps the semaphore behind `fd`; the descriptor may be closed afterwards. Unmap it with
 *  ort_interop_host_unmap_semaphore(). Null with errno set on failure, EINVAL if it is none. */
OrtInteropHostSemaphore* ort_interop_host_map_semaphore(int fd);
/** Ends the use of a mapping; null is ignored. */
void ort_interop_host_unmap_semaphore(OrtInteropHostSemaphore* semaphore);

/** The semaphore's value now. */
uint64_t ort_interop_host_semaphore_value(const OrtInteropHostSemaphore* semaphore);

/** Raises the value to `value` and wakes who waits. Returns -1 with errno EINVAL, and changes
 *  nothing, if the semaphore is already at or past `value`. */
int ort_interop_host_signal(OrtInteropHostSemaphore* semaphore, uint64_t value);

/** Sleeps until the semaphore is at least at `value`. `timeout_ns` is in nanoseconds, negative for
 *  no limit. Returns -1 with errno ETIMEDOUT when the time is over. */
int ort_interop_host_wait(OrtInteropHostSemaphore* semaphore, uint64_t value, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif /* ORT_INTEROP_HOST_INTEROP_H_ */
