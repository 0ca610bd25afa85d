/*
 * An EP library without EPs: it remembers the OrtApiBase that its host gives it, so that a test can
 * speak to a host that exports nothing.
 */
#include <stddef.h>

#include "ort_interop_abi.h"

#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

EXPORTED const OrtApiBase* api_base_probe_seen = NULL;

EXPORTED OrtStatus* CreateEpFactories(const char* registration_name, const OrtApiBase* base,
                                      const OrtLogger* logger, OrtEpFactory** factories,
                                      size_t max_factories, size_t* count) {
  (void)registration_name;
  (void)logger;
  (void)factories;
  (void)max_factories;
  api_base_probe_seen = base;
  *count = 0;
  return NULL;
}

EXPORTED OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  (void)factory;
  return NULL;
}
