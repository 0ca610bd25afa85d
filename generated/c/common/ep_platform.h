/*
 * Threads, locks, aligned memory and descriptors: what C11 leaves to the operating system.
 *
 * All objects are plain values that their owner initialises and destroys.
 */
#ifndef EP_PLATFORM_H_
#define EP_PLATFORM_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef _WIN32
#include <windows.h>

#define EP_MUTEX_INITIALIZER SRWLOCK_INIT
typedef SRWLOCK EpMutex;
typedef CONDITION_VARIABLE EpCondition;
#else
#include <pthread.h>

#define EP_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
typedef pthread_mutex_t EpMutex;
typedef pthread_cond_t EpCondition;
#endif

/** Makes `mutex` usable. It is not recursive. */
void ep_mutex_init(EpMutex* mutex);
/** Ends the use of `mutex`, which nobody holds. */
void ep_mutex_destroy(EpMutex* mutex);
/** Blocks until the calling thread holds `mutex`. */
void ep_mutex_lock(EpMutex* mutex);
/** Gives up `mutex`, which the calling thread holds. */
void ep_mutex_unlock(EpMutex* mutex);

/** Makes `condition` usable. */
void ep_condition_init(EpCondition* condition);
/** Ends the use of `condition`, on which nobody waits. */
void ep_condition_destroy(EpCondition* condition);
/** Gives up `mutex`, sleeps until woken (or for no reason at all), and takes `mutex` again. */
void ep_condition_wait(EpCondition* condition, EpMutex* mutex);
/** Wakes every thread that sleeps on `condition`. */
void ep_condition_broadcast(EpCondition* condition);

/**
 * Runs `run(argument)` on a new thread that nobody joins and that takes no signals.
 *
 * @return false when the system refuses another thread; `run` is then never called.
 */
bool ep_thread_start(void (*run)(void* argument), void* argument);

/** Keeps the library loaded when ONNX Runtime unloads it, because its threads may still run. */
void ep_library_keep(void);

/** Memory of at least `bytes` bytes whose address is a multiple of `alignment`, a power of two.
 *  Null when there is none left. The caller releases it with ep_aligned_free(). */
void* ep_aligned_alloc(size_t alignment, size_t bytes);
/** Releases what ep_aligned_alloc() returned; null is ignored. */
void ep_aligned_free(void* memory);

/** The size of a memory page in bytes, a power of two. */
size_t ep_page_size(void);

/** Duplicates the file descriptor `fd`, 0 included, into `*copy`, which child programs do not
 *  inherit. False, with `*copy` -1, when `fd` is not open or the platform has no descriptors. */
bool ep_fd_duplicate(int fd, int* copy);
/** Closes a descriptor that ep_fd_duplicate() made. */
void ep_fd_close(int fd);

#endif /* EP_PLATFORM_H_ */
