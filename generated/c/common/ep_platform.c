/* POSIX beside plain C11. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "ep_platform.h"

#include <stdint.h>
#include <stdlib.h>

#ifdef _WIN32
#include <malloc.h>
#include <process.h>
#else
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#endif

typedef struct EpThreadStart {
  void (*run)(void* argument);
  void* argument;
} EpThreadStart;

static EpThreadStart* ep_thread_start_create(void (*run)(void*), void* argument) {
  EpThreadStart* start = malloc(sizeof *start);
  if (start != NULL) {
    start->run = run;
    start->argument = argument;
  }
  return start;
}

static void ep_thread_run(EpThreadStart* start) {
  EpThreadStart copy = *start;
  free(start);
  copy.run(copy.argument);
}

#ifdef _WIN32

void ep_mutex_init(EpMutex* mutex) {
  InitializeSRWLock(mutex);
}
void ep_mutex_destroy(EpMutex* mutex) {
  (void)mutex;
}
void ep_mutex_lock(EpMutex* mutex) {
  AcquireSRWLockExclusive(mutex);
}
void ep_mutex_unlock(EpMutex* mutex) {
  ReleaseSRWLockExclusive(mutex);
}
void ep_condition_init(EpCondition* condition) {
  InitializeConditionVariable(condition);
}
void ep_condition_destroy(EpCondition* condition) {
  (void)condition;
}
void ep_condition_wait(EpCondition* condition, EpMutex* mutex) {
  SleepConditionVariableSRW(condition, mutex, INFINITE, 0);
}
void ep_condition_broadcast(EpCondition* condition) {
  WakeAllConditionVariable(condition);
}

static unsigned __stdcall ep_thread_main(void* start) {
  ep_thread_run(start);
  return 0;
}

bool ep_thread_start(void (*run)(void* argument), void* argument) {
  EpThreadStart* start = ep_thread_start_create(run, argument);
  if (start == NULL) {
    return false;
  }
  uintptr_t thread = _beginthreadex(NULL, 0, ep_thread_main, start, 0, NULL);
  if (thread == 0) {
    free(start);
    return false;
  }
  CloseHandle((HANDLE)thread);
  return true;
}

void ep_library_keep(void) {
  HMODULE self = NULL;
  (void)GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                           (LPCWSTR)(uintptr_t)ep_library_keep, &self);
}

void* ep_aligned_alloc(size_t alignment, size_t bytes) {
  return _aligned_malloc(bytes, alignment);
}
void ep_aligned_free(void* memory) {
  _aligned_free(memory);
}

size_t ep_page_size(void) {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info.dwPageSize;
}

bool ep_fd_duplicate(int fd, int* copy) {
  (void)fd;
  *copy = -1;
  return false;
}

void ep_fd_close(int fd) {
  (void)fd;
}

#else

void ep_mutex_init(EpMutex* mutex) {
  (void)pthread_mutex_init(mutex, NULL);
}
void ep_mutex_destroy(EpMutex* mutex) {
  (void)pthread_mutex_destroy(mutex);
}
void ep_mutex_lock(EpMutex* mutex) {
  (void)pthread_mutex_lock(mutex);
}
void ep_mutex_unlock(EpMutex* mutex) {
  (void)pthread_mutex_unlock(mutex);
}
void ep_condition_init(EpCondition* condition) {
  (void)pthread_cond_init(condition, NULL);
}
void ep_condition_destroy(EpCondition* condition) {
  (void)pthread_cond_destroy(condition);
}
void ep_condition_wait(EpCondition* condition, EpMutex* mutex) {
  (void)pthread_cond_wait(condition, mutex);
}
void ep_condition_broadcast(EpCondition* condition) {
  (void)pthread_cond_broadcast(condition);
}

static void* ep_thread_main(void* start) {
  ep_thread_run(start);
  return NULL;
}

bool ep_thread_start(void (*run)(void* argument), void* argument) {
  EpThreadStart* start = ep_thread_start_create(run, argument);
  if (start == NULL) {
    return false;
  }
  /* The application's signal handlers must not run on a thread that it does not know. */
  sigset_t all;
  sigset_t before;
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failure = pthread_create(&thread, NULL, ep_thread_main, start);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failure != 0) {
    free(start);
    return false;
  }
  pthread_detach(thread);
  return true;
}

/* The linker does it, by -z nodelete. */
void ep_library_keep(void) {}

void* ep_aligned_alloc(size_t alignment, size_t bytes) {
  void* memory = NULL;
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

void ep_aligned_free(void* memory) {
  free(memory);
}

size_t ep_page_size(void) {
  return (size_t)sysconf(_SC_PAGESIZE);
}

bool ep_fd_duplicate(int fd, int* copy) {
  /* Not 0, which drivers may take for none. */
  *copy = fcntl(fd, F_DUPFD_CLOEXEC, 1);
  return *copy >= 0;
}

void ep_fd_close(int fd) {
  (void)close(fd);
}

#endif
