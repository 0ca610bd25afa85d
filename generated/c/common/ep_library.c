/* dladdr() is beside POSIX. */
#if !defined(_WIN32) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "ep_library.h"

#include <stdint.h>
#include <stdlib.h>

#ifdef _WIN32
#include <windows.h>

/* Longer than any path that Windows has. */
#define EP_LIBRARY_PATH_MAX 32768

char* ep_library_path(void) {
  HMODULE self = NULL;
  if (!GetModuleHandleExW(
          GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
          (LPCWSTR)(uintptr_t)ep_library_path, &self)) {
    return NULL;
  }
  wchar_t* wide = malloc(EP_LIBRARY_PATH_MAX * sizeof *wide);
  if (wide == NULL) {
    return NULL;
  }
  char* path = NULL;
  DWORD length = GetModuleFileNameW(self, wide, EP_LIBRARY_PATH_MAX);
  if (length > 0 && length < EP_LIBRARY_PATH_MAX) {
    int bytes = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    path = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (path != NULL &&
        WideCharToMultiByte(CP_UTF8, 0, wide, -1, path, bytes, NULL, NULL) != bytes) {
      free(path);
      path = NULL;
    }
  }
  free(wide);
  return path;
}

#else
#include <dlfcn.h>

char* ep_library_path(void) {
  Dl_info info;
  /* The name is the one that the library was loaded by, which may be relative or a link. */
  if (dladdr((const void*)(uintptr_t)ep_library_path, &info) == 0 || info.dli_fname == NULL) {
    return NULL;
  }
  return realpath(info.dli_fname, NULL);
}
#endif
