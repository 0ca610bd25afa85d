/*
 * The two functions that ONNX Runtime looks up in the library, and the choice of the API version.
 */
#include <inttypes.h>
#include <stdio.h>

#include "ep_config.h"
#include "ep_context.h"
#include "ep_factory.h"
#include "ep_platform.h"

#ifdef _WIN32
#define EP_EXPORT __declspec(dllexport)
#else
#define EP_EXPORT __attribute__((visibility("default")))
#endif

EP_EXPORT OrtStatus* CreateEpFactories(const char* registration_name, const OrtApiBase* base,
                                       const OrtLogger* logger, OrtEpFactory** factories,
                                       size_t max_factories, size_t* factory_count);
EP_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory);

/* Release `minor` of a version "1.minor.patch"; 0 if the text is not one. */
static uint32_t ep_host_minor(const char* version) {
  unsigned major = 0;
  unsigned minor = 0;
  if (version == NULL || sscanf(version, "%u.%u", &major, &minor) != 2) {
    return 0;
  }
  return major > 1 ? EP_API_NEWEST : minor;
}

/* The newest API that both sides know, null if the host has none. The host's version is read
 * first because it complains on stderr about a version that it does not have. */
static const OrtApi* ep_negotiate(const OrtApiBase* base, uint32_t* api_version) {
  uint32_t version = ep_host_minor(base->GetVersionString());
  if (version > EP_API_NEWEST) {
    version = EP_API_NEWEST;
  }
  for (; version >= EP_API_FLOOR; --version) {
    const OrtApi* api = base->GetApi(version);
    if (api != NULL) {
      *api_version = version;
      return api;
    }
  }
  return NULL;
}

/* The first API version is enough for a status. A host without it gets no factory, silently. */
static OrtStatus* ep_refuse_host(const OrtApiBase* base) {
  const char* version = base->GetVersionString();
  const OrtApi* api = base->GetApi(1);
  EpError error;
  (void)ep_fail(&error, ORT_NOT_IMPLEMENTED,
                EP_NAME " " EP_VERSION " needs ONNX Runtime 1.%d or newer, but this one is %s",
                EP_API_FLOOR, version == NULL ? "of no known version" : version);
  return api == NULL ? NULL : ep_status(api, &error);
}

OrtStatus* CreateEpFactories(const char* registration_name, const OrtApiBase* base,
                             const OrtLogger* logger, OrtEpFactory** factories,
                             size_t max_factories, size_t* factory_count) {
  (void)registration_name;
  *factory_count = 0;
  ep_library_keep();
  uint32_t api_version = 0;
  const OrtApi* api = ep_negotiate(base, &api_version);
  if (api == NULL) {
    return ep_refuse_host(base);
  }
  EpError error;
  ep_error_clear(&error);
  if (max_factories < 1) {
    (void)ep_fail_argument(&error, EP_NAME ": max_factories is 0; there is one factory");
    return ep_status(api, &error);
  }
  EpContext* context = ep_context_create(api, api_version, logger, &error);
  if (context != NULL) {
    factories[0] = ep_factory_create(context, &error);
    *factory_count = factories[0] != NULL;
    ep_context_release(context);
  }
  return ep_status(api, &error);
}

OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  ep_factory_release(factory);
  return NULL;
}
