/*
 * Every call of the driver fails once, at each place where it is made, with each of several results:
 * the status is the result's, it names the call, out-parameters stay null, and everything that was
 * made is released exactly once.
 *
 * gpu_faults ORT_LIBRARY EP_LIBRARY RESULT:STATUS...
 */
#include <unistd.h>

#include "gpu_mock.h"

#define SIZE 65536
#define ELEMENTS (SIZE / 4)
#define MOST_CALLS 1000

static Mock mock;
static int injected;
static OrtErrorCode expected;
static size_t refused;
static size_t absorbed;

/* Whether the step worked. If not, the status must tell why. */
static bool step(const OrtApi* api, OrtStatus* status, const char* what) {
  if (status == NULL) {
    return true;
  }
  const char* function = mock.failed_function();
  CHECK(function != NULL);
  const char* message = api->GetErrorMessage(status);
  /* A probe that fails is a probe that says no. */
  bool refusal = strstr(message, "cannot be imported") != NULL;
  const char* text = refusal ? "import" : function;
  OrtErrorCode code = refusal ? ORT_NOT_IMPLEMENTED : expected;
  if (api->GetErrorCode(status) != code || strstr(refusal ? what : message, text) == NULL) {
    fprintf(stderr, "%s: %s failed with %d, status is %d '%s', expected %d with '%s'\n", what,
            function, injected, (int)api->GetErrorCode(status), message, (int)code, text);
    exit(1);
  }
  api->ReleaseStatus(status);
  ++refused;
  return false;
}

static OrtValue* host_tensor(const Client* client, void* data) {
  OrtMemoryInfo* info = NULL;
  OrtValue* value = NULL;
  const int64_t shape[] = {ELEMENTS};
  OK(client, client->api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info));
  OK(client, client->api->CreateTensorWithDataAsOrtValue(
                 info, data, SIZE, shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  client->api->ReleaseMemoryInfo(info);
  return value;
}

static void copies(const Client* client, OrtValue* device, OrtSyncStream* stream) {
  static float source[ELEMENTS];
  static float target[ELEMENTS];
  const OrtApi* api = client->api;
  OrtValue* from = host_tensor(client, source);
  OrtValue* to = host_tensor(client, target);
  const OrtValue* const_from = from;
  const OrtValue* const_device = device;
  for (size_t i = 0; i < ELEMENTS; ++i) {
    source[i] = (float)i;
    target[i] = -1;
  }
  bool in = step(api, api->CopyTensors(client->env, &const_from, &device, NULL, 1), "copy in");
  bool out = step(api, api->CopyTensors(client->env, &const_device, &to, NULL, 1), "copy out");
  CHECK(!in || !out || memcmp(source, target, SIZE) == 0);
  if (stream != NULL) {
    bool queued =
        step(api, api->CopyTensors(client->env, &const_from, &device, stream, 1), "queued copy in");
    queued = step(api, api->CopyTensors(client->env, &const_device, &to, stream, 1),
                  "queued copy out") &&
             queued;
    OrtSyncStreamImpl* impl = (OrtSyncStreamImpl*)api->GetEpApi()->SyncStream_GetImpl(stream);
    bool flushed = step(api, impl->Flush(impl), "flush");
    CHECK(!queued || !flushed || memcmp(source, target, SIZE) == 0);
    if (!flushed) {
      OK(client, impl->Flush(impl));
    }
  }
  api->ReleaseValue(from);
  api->ReleaseValue(to);
}

static void notifications(const Client* client, OrtSyncStream* stream) {
  const OrtApi* api = client->api;
  OrtSyncStreamImpl* impl = (OrtSyncStreamImpl*)api->GetEpApi()->SyncStream_GetImpl(stream);
  OrtSyncNotificationImpl* notification = (OrtSyncNotificationImpl*)&refused;
  if (!step(api, impl->CreateNotification(impl, &notification), "notification")) {
    CHECK(notification == NULL);
    return;
  }
  (void)step(api, notification->Activate(notification), "activate");
  (void)step(api, notification->WaitOnDevice(notification, stream), "wait on device");
  (void)step(api, notification->WaitOnHost(notification), "wait on host");
  notification->Release(notification);
}

/* Memory is null when the driver refuses it; the allocator has no other way to say so. The next time
 * it works. */
static void allocation(const Client* client) {
  const OrtApi* api = client->api;
  OrtAllocator* allocator = NULL;
  OK(client, api->CreateSharedAllocator(client->env, client->device, OrtDeviceMemoryType_DEFAULT,
                                        OrtDeviceAllocator, NULL, &allocator));
  const char* before = mock.failed_function();
  void* memory = allocator->Alloc(allocator, SIZE);
  if (memory == NULL) {
    CHECK(mock.failed_function() != before);
    memory = allocator->Alloc(allocator, SIZE);
  }
  CHECK(memory != NULL);
  allocator->Free(allocator, memory);
  OK(client, api->ReleaseSharedAllocator(client->env, client->device, OrtDeviceMemoryType_DEFAULT));
}

/* Work that waits for `value` is on the stream while `release` is called, so it is put off. */
static void semaphores(const Client* client, OrtExternalResourceImporter* importer,
                       OrtSyncStream* stream, int fd, OrtExternalMemoryHandle** memory) {
  const OrtApi* api = client->api;
  OrtExternalSemaphoreDescriptor descriptor = {
      .version = 24,
      .type = ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD,
      .native_handle = (void*)(intptr_t)fd,
  };
  OrtExternalSemaphoreHandle* semaphore = NULL;
  if (!step(api, client->interop->ImportSemaphore(importer, &descriptor, &semaphore),
            "import semaphore")) {
    CHECK(semaphore == NULL);
    return;
  }
  uint64_t* value = mock.map(fd, sizeof *value);
  semaphore_set(value, 0);
  if (stream != NULL &&
      step(api, client->interop->WaitSemaphore(importer, semaphore, stream, 1), "wait")) {
    (void)step(api, client->interop->SignalSemaphore(importer, semaphore, stream, 2), "signal");
    allocation(client);
    if (*memory != NULL) {
      client->interop->ReleaseExternalMemoryHandle(*memory);
      *memory = NULL;
    }
  }
  client->interop->ReleaseExternalSemaphoreHandle(semaphore);
  semaphore_set(value, 1);
  mock.unmap(value, sizeof *value);
}

/* From 1.30 on; a page of the process. */
static void host_allocation(const Client* client, OrtExternalResourceImporter* importer) {
  static _Alignas(65536) char page[65536];
  const OrtExternalMemoryDescriptor descriptor = {
      .version = 30,
      .handle_type = ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION,
      .native_handle = page,
      .size_bytes = sizeof page,
  };
  OrtExternalMemoryHandle* handle = NULL;
  if (client->minor < 30) {
    return;
  }
  if (step(client->api, client->interop->ImportMemory(importer, &descriptor, &handle),
           "import host allocation")) {
    client->interop->ReleaseExternalMemoryHandle(handle);
  } else {
    CHECK(handle == NULL);
  }
}

static void imports(const Client* client, int memory_fd, int semaphore_fd) {
  const OrtApi* api = client->api;
  const OrtInteropApi* interop = client->interop;
  OrtExternalResourceImporter* importer = NULL;
  OK(client, interop->CreateExternalResourceImporterForDevice(client->device, &importer));
  OrtSyncStream* stream = NULL;
  const char* before = mock.failed_function();
  if (step(api, api->CreateSyncStreamForEpDevice(client->device, NULL, &stream), "stream")) {
    const char* failed = mock.failed_function();
    CHECK(failed == before || strstr(failed, "Create") == NULL);
  } else {
    CHECK(stream == NULL);
  }
  OrtExternalMemoryDescriptor descriptor = {
      .version = 24,
      .handle_type = ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD,
      .native_handle = (void*)(intptr_t)memory_fd,
      .size_bytes = SIZE,
  };
  OrtExternalMemoryHandle* memory = NULL;
  if (step(api, interop->ImportMemory(importer, &descriptor, &memory), "import memory")) {
    const int64_t shape[] = {ELEMENTS};
    OrtValue* tensor =
        client_tensor(client, importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, shape, 1, 0);
    copies(client, tensor, stream);
    api->ReleaseValue(tensor);
  } else {
    CHECK(memory == NULL);
  }
  if (stream != NULL) {
    notifications(client, stream);
  }
  host_allocation(client, importer);
  allocation(client);
  semaphores(client, importer, stream, semaphore_fd, &memory);
  if (memory != NULL) {
    interop->ReleaseExternalMemoryHandle(memory);
  }
  if (stream != NULL) {
    api->ReleaseSyncStream(stream);
  }
  interop->ReleaseExternalResourceImporter(importer);
}

/* Registration and all the rest, once. */
static void everything(Client* client, const char* ep_path, int memory_fd, int semaphore_fd) {
  const OrtApi* api = client->api;
  client->device = NULL;
  if (!step(api, api->RegisterExecutionProviderLibrary(client->env, "gpu", ep_path), "register")) {
    return;
  }
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  OK(client, api->GetEpDevices(client->env, &devices, &count));
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(api->EpDevice_EpName(devices[i]), EP_NAME_UNDER_TEST) == 0) {
      client->device = devices[i];
    }
  }
  /* A driver that does not start, or cannot count its devices, has none. */
  if (client->device != NULL) {
    imports(client, memory_fd, semaphore_fd);
  }
  OK(client, api->UnregisterExecutionProviderLibrary(client->env, "gpu"));
}

int main(int argc, char** argv) {
  CHECK(argc > 3);
  mock = mock_open();
  Client client;
  client_load(&client, argv[1]);
  client.interop = client.api->GetInteropApi();
  int memory_fd = (int)mock.export_memory(SIZE);
  int semaphore_fd = (int)mock.export_semaphore();
  size_t fds = client_open_fds();
  size_t places = 0;
  for (int i = 3; i < argc; ++i) {
    int status = 0;
    CHECK(sscanf(argv[i], "%d:%d", &injected, &status) == 2);
    expected = (OrtErrorCode)status;
    bool failed = true;
    for (unsigned nth = 1; failed; ++nth) {
      CHECK(nth < MOST_CALLS);
      mock.forget_calls();
      mock.fail(NULL, nth, injected);
      size_t before = refused;
      everything(&client, argv[2], memory_fd, semaphore_fd);
      mock_settle(&mock, 0);
      failed = mock.failed_function() != NULL;
      places += failed;
      if (failed && refused == before) {
        printf("absorbed %s\n", mock.failed_function());
        ++absorbed;
      }
      CHECK(refused <= before + 1);
      CHECK(failed || refused == before);
      mock.fail(NULL, 0, 0);
      mock_check(&mock);
      for (int wait = 0; wait < 1000 && client_open_fds() != fds; ++wait) {
        client_sleep_ms(1);
      }
      CHECK(client_open_fds() == fds);
    }
  }
  mock.close(memory_fd);
  mock.close(semaphore_fd);
  client.api->ReleaseEnv(client.env);
  printf("places %zu refused %zu absorbed %zu\n", places, refused, absorbed);
  return 0;
}
