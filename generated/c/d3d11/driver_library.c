#include "driver_library.h"

#include <string.h>

#ifdef _WIN32
#include <windows.h>

typedef HMODULE DriverModule;

/* The default folders leave out the current one, where anybody could have put a library. */
static DriverModule driver_module_open(const char* file_name) {
  return LoadLibraryExA(file_name, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
}

static bool driver_module_find(DriverModule module, const char* name, void* slot) {
  FARPROC found = GetProcAddress(module, name);
  memcpy(slot, &found, sizeof found);
  return found != NULL;
}

static void driver_module_close(DriverModule module) {
  FreeLibrary(module);
}
#else
#include <dlfcn.h>

typedef void* DriverModule;

static DriverModule driver_module_open(const char* file_name) {
  return dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
}

static bool driver_module_find(DriverModule module, const char* name, void* slot) {
  void* found = dlsym(module, name);
  memcpy(slot, &found, sizeof found);
  return found != NULL;
}

static void driver_module_close(DriverModule module) {
  (void)dlclose(module);
}
#endif

bool driver_library_open(const char* const* file_names, const DriverSymbol* symbols, void* table) {
  DriverModule module = NULL;
  for (; module == NULL && *file_names != NULL; ++file_names) {
    module = driver_module_open(*file_names);
  }
  if (module == NULL) {
    return false;
  }
  for (; symbols->name != NULL; ++symbols) {
    if (!driver_module_find(module, symbols->name, (char*)table + symbols->slot) &&
        !symbols->optional) {
      driver_module_close(module);
      return false;
    }
  }
  return true;
}
