#define _GNU_SOURCE
#include "direct.h"

#include <dlfcn.h>
#include <pthread.h>

#define MAX_LIVE 64

FakeHost fake_host;

static const OrtApi* real_api;
static OrtApi counting_api;
static OrtEpApi watching_ep_api;
static const OrtEpApi* real_ep_api;
static OrtStatus* live[MAX_LIVE];
static pthread_mutex_t live_mutex = PTHREAD_MUTEX_INITIALIZER;

static char foreign_object;
OrtSyncStream* const foreign_stream = (OrtSyncStream*)&foreign_object;
static char fake_object;
OrtSyncStream* const fake_stream = (OrtSyncStream*)&fake_object;
OrtSyncStreamImpl* fake_stream_impl;

static OrtStatus* ORT_API_CALL counting_create_status(OrtErrorCode code, const char* message) {
  OrtStatus* status = real_api->CreateStatus(code, message);
  pthread_mutex_lock(&live_mutex);
  size_t i = 0;
  while (i < MAX_LIVE && live[i] != NULL) {
    ++i;
  }
  CHECK(i < MAX_LIVE);
  live[i] = status;
  pthread_mutex_unlock(&live_mutex);
  return status;
}

static void ORT_API_CALL counting_release_status(OrtStatus* status) {
  pthread_mutex_lock(&live_mutex);
  for (size_t i = 0; i < MAX_LIVE; ++i) {
    if (live[i] == status) {
      live[i] = NULL;
    }
  }
  pthread_mutex_unlock(&live_mutex);
  real_api->ReleaseStatus(status);
}

size_t live_statuses(void) {
  size_t count = 0;
  for (size_t i = 0; i < MAX_LIVE; ++i) {
    count += live[i] != NULL;
  }
  return count;
}

static OrtStatus* ORT_API_CALL failing_create_tensor(OrtAllocator* deleter, void* data,
                                                     size_t bytes, const int64_t* shape,
                                                     size_t rank, ONNXTensorElementDataType type,
                                                     OrtValue** out) {
  if (fake_host.fail_tensors) {
    return real_api->CreateStatus(ORT_RUNTIME_EXCEPTION, "no tensor today");
  }
  return real_api->CreateTensorWithDataAndDeleterAsOrtValue(deleter, data, bytes, shape, rank, type,
                                                            out);
}

static void ORT_API_CALL foreign_release(OrtSyncStreamImpl* stream) {
  (void)stream;
  CHECK(false);
}

static const OrtSyncStreamImpl* ORT_API_CALL watching_get_impl(const OrtSyncStream* stream) {
  static const OrtSyncStreamImpl foreign = {.ort_version_supported = 24,
                                            .Release = foreign_release};
  if (stream == fake_stream) {
    return fake_stream_impl;
  }
  return stream == foreign_stream ? &foreign : real_ep_api->SyncStream_GetImpl(stream);
}

static const OrtEpApi* ORT_API_CALL watching_get_ep_api(void) {
  return &watching_ep_api;
}

static const OrtApi* ORT_API_CALL fake_get_api(uint32_t version) {
  CHECK(fake_host.asked_count < sizeof fake_host.asked / sizeof fake_host.asked[0]);
  fake_host.asked[fake_host.asked_count++] = version;
  return version <= fake_host.newest ? &counting_api : NULL;
}

static const char* ORT_API_CALL fake_get_version(void) {
  return fake_host.version;
}

const OrtApiBase* fake_base(const Client* client, const char* version, uint32_t newest) {
  static const OrtApiBase base = {.GetApi = fake_get_api, .GetVersionString = fake_get_version};
  real_api = client->api;
  real_ep_api = client->api->GetEpApi();
  /* The EP uses slots of 1.24 only, and a real table may be no longer than that. */
  memcpy(&counting_api, real_api, offsetof(OrtApi, SessionGetEpDeviceForOutputs));
  memcpy(&watching_ep_api, real_ep_api, offsetof(OrtEpApi, GetEnvConfigEntries));
  counting_api.CreateStatus = counting_create_status;
  counting_api.ReleaseStatus = counting_release_status;
  counting_api.CreateTensorWithDataAndDeleterAsOrtValue = failing_create_tensor;
  counting_api.GetEpApi = watching_get_ep_api;
  watching_ep_api.SyncStream_GetImpl = watching_get_impl;
  memset(&fake_host, 0, sizeof fake_host);
  fake_host.version = version;
  fake_host.newest = newest;
  return &base;
}

void release_status(OrtStatus* status) {
  counting_release_status(status);
}

void expect_refusal(OrtStatus* status, OrtErrorCode code, const char* text, const char* what) {
  if (status == NULL) {
    fprintf(stderr, "%s: success where an error was due\n", what);
    exit(1);
  }
  const char* message = real_api->GetErrorMessage(status);
  if (real_api->GetErrorCode(status) != code || strstr(message, text) == NULL) {
    fprintf(stderr, "%s: got %d '%s', expected %d with '%s'\n", what,
            (int)real_api->GetErrorCode(status), message, (int)code, text);
    exit(1);
  }
  CHECK(live_statuses() == 1);
  release_status(status);
  CHECK(live_statuses() == 0);
}

void expect_ok(OrtStatus* status, const char* what) {
  if (status != NULL) {
    fprintf(stderr, "%s: %s\n", what, real_api->GetErrorMessage(status));
    exit(1);
  }
  CHECK(live_statuses() == 0);
}

void direct_open(Direct* direct, const char* ort_path, const char* ep_path) {
  memset(direct, 0, sizeof *direct);
  client_open(&direct->client, ort_path, ep_path);
  void* library = dlopen(ep_path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL);
  *(void**)&direct->library.create = dlsym(library, "CreateEpFactories");
  *(void**)&direct->library.release = dlsym(library, "ReleaseEpFactory");
  CHECK(direct->library.create != NULL && direct->library.release != NULL);
  char version[16];
  (void)snprintf(version, sizeof version, "1.%u.0", direct->client.minor);
  const OrtApiBase* base = fake_base(&direct->client, version, direct->client.minor);
  size_t count = 0;
  expect_ok(direct->library.create("direct", base, NULL, &direct->factory, 1, &count), "create");
  fake_host.version = "gone";
  CHECK(count == 1 && direct->factory != NULL);
  const OrtHardwareDevice* hardware = direct->client.api->EpDevice_Device(direct->client.device);
  expect_ok(direct->factory->GetSupportedDevices(direct->factory, &hardware, 1, &direct->device, 1,
                                                 &count),
            "devices");
  CHECK(count == 1 && direct->device != NULL);
  expect_ok(direct->factory->CreateExternalResourceImporterForDevice(
                direct->factory, direct->device, &direct->importer),
            "importer");
  CHECK(direct->importer != NULL);
  OK(&direct->client,
     direct->client.api->CreateSyncStreamForEpDevice(direct->client.device, NULL, &direct->stream));
}

void direct_close(Direct* direct) {
  direct->client.api->ReleaseSyncStream(direct->stream);
  if (direct->importer != NULL) {
    direct->importer->Release(direct->importer);
  }
  real_ep_api->ReleaseEpDevice(direct->device);
  if (direct->factory != NULL) {
    expect_ok(direct->library.release(direct->factory), "release");
  }
  client_close(&direct->client);
  CHECK(live_statuses() == 0);
}
