/*
 * How a test program that had threads ends under Wine.
 */
#ifndef WINE_EXIT_H_
#define WINE_EXIT_H_

#include <stdbool.h>

#ifdef _WIN32
#include <windows.h>
/* After windows.h, whose types it needs. */
#include <tlhelp32.h>

static inline bool wine_exit_is_last_thread(void) {
  THREADENTRY32 thread = {.dwSize = sizeof thread};
  HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
  bool last = all != INVALID_HANDLE_VALUE;
  for (BOOL more = Thread32First(all, &thread); last && more; more = Thread32Next(all, &thread)) {
    last = thread.th32OwnerProcessID != GetCurrentProcessId() ||
           thread.th32ThreadID == GetCurrentThreadId();
  }
  (void)CloseHandle(all);
  return last;
}

/**
 * Waits for the process's other threads to end, 10 s at most. Wine 8 can crash when a process exits
 * while one of them is ending; Windows does not, and has threads of its own that stay.
 *
 * @return false if one is still there, under Wine
 */
static inline bool wine_exit_wait(void) {
  if (GetProcAddress(GetModuleHandleA("ntdll.dll"), "wine_get_version") == NULL) {
    return true;
  }
  ULONGLONG start = GetTickCount64();
  while (!wine_exit_is_last_thread()) {
    if (GetTickCount64() - start > 10000) {
      return false;
    }
    Sleep(1);
  }
  return true;
}
#else
/** Nothing to wait for: this is not Windows. @return true */
static inline bool wine_exit_wait(void) {
  return true;
}
#endif

#endif /* WINE_EXIT_H_ */
