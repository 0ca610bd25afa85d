/*
 * The factory: which hosts it takes, what it stamps, and what its objects do.
 *
 * factory_direct ORT_LIBRARY EP_LIBRARY
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "direct.h"

/* On each host: what is asked for, what is stamped, and what is offered. */
static void test_negotiation(Direct* direct) {
  static const struct {
    const char* version;
    uint32_t newest;
    uint32_t asked;
    uint32_t stamp;
    bool host_allocation;
  } hosts[] = {
      {"1.24.1", 24, 24, 24, false},    {"1.25.0", 25, 25, 25, false},
      {"1.27.0", 27, 27, 27, false},    {"1.29.0", 29, 29, 29, false},
      {"1.30.0", 30, 30, 29, true},     {"1.32.0", 32, 30, 29, true},
      {"1.99.0-rc1", 99, 30, 29, true}, {"2.0.0", 40, 30, 29, true},
  };
  for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; ++i) {
    const OrtApiBase* base = fake_base(&direct->client, hosts[i].version, hosts[i].newest);
    OrtEpFactory* factory = NULL;
    size_t count = 9;
    expect_ok(direct->library.create("x", base, NULL, &factory, 4, &count), hosts[i].version);
    CHECK(count == 1 && factory != NULL);
    CHECK(fake_host.asked_count == 1 && fake_host.asked[0] == hosts[i].asked);
    CHECK(factory->ort_version_supported == hosts[i].stamp);
    CHECK((factory->InitGraphicsInterop != NULL) == (hosts[i].stamp >= 25));
    OrtExternalResourceImporterImpl* importer = NULL;
    expect_ok(factory->CreateExternalResourceImporterForDevice(factory, direct->device, &importer),
              "importer");
    CHECK(importer->ort_version_supported == hosts[i].stamp);
    CHECK(importer->CanImportMemory(importer, ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION) ==
          hosts[i].host_allocation);
    CHECK(importer->CanImportMemory(importer, ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD));
    importer->Release(importer);
    expect_ok(direct->library.release(factory), "release");
  }
}

/* A host that says more than it has is asked downwards. */
static void test_negotiation_downwards(Direct* direct) {
  const OrtApiBase* base = fake_base(&direct->client, "1.31.0", 28);
  OrtEpFactory* factory = NULL;
  size_t count = 0;
  expect_ok(direct->library.create("x", base, NULL, &factory, 1, &count), "downwards");
  CHECK(fake_host.asked_count == 3 && fake_host.asked[0] == 30 && fake_host.asked[2] == 28);
  CHECK(factory->ort_version_supported == 28);
  expect_ok(direct->library.release(factory), "release");
}

static void test_old_hosts(Direct* direct) {
  static const struct {
    const char* version;
    uint32_t newest;
  } hosts[] = {{"1.23.2", 23}, {"1.8.1", 8}, {"garbage", 30}, {"", 30}, {"1.24.0", 23}};
  for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; ++i) {
    const OrtApiBase* base = fake_base(&direct->client, hosts[i].version, hosts[i].newest);
    OrtEpFactory* factory = NULL;
    size_t count = 0;
    OrtStatus* status = direct->library.create("x", base, NULL, &factory, 1, &count);
    CHECK(status != NULL && factory == NULL && count == 0);
    CHECK(strstr(direct->client.api->GetErrorMessage(status), hosts[i].version) != NULL);
    expect_refusal(status, ORT_NOT_IMPLEMENTED, "needs ONNX Runtime 1.24", hosts[i].version);
    CHECK(fake_host.asked[fake_host.asked_count - 1] == 1);
  }
}

/* Hosts that say nothing, or have nothing at all, get no factory and no crash. */
static void test_mute_hosts(Direct* direct) {
  const OrtApiBase* base = fake_base(&direct->client, NULL, 30);
  OrtEpFactory* factory = NULL;
  size_t count = 9;
  OrtStatus* status = direct->library.create("x", base, NULL, &factory, 1, &count);
  expect_refusal(status, ORT_NOT_IMPLEMENTED, "of no known version", "mute");
  CHECK(count == 0);
  base = fake_base(&direct->client, "1.30.0", 0);
  count = 9;
  expect_ok(direct->library.create("x", base, NULL, &factory, 1, &count), "empty");
  CHECK(count == 0 && factory == NULL);
}

static void test_no_room(Direct* direct) {
  const OrtApiBase* base = fake_base(&direct->client, "1.24.0", 24);
  OrtEpFactory* factory = NULL;
  size_t count = 0;
  expect_refusal(direct->library.create("x", base, NULL, &factory, 0, &count), ORT_INVALID_ARGUMENT,
                 "max_factories is 0", "room");
  const OrtHardwareDevice* hardware = direct->client.api->EpDevice_Device(direct->client.device);
  OrtEpDevice* device = NULL;
  count = 9;
  expect_ok(direct->factory->GetSupportedDevices(direct->factory, &hardware, 1, &device, 0, &count),
            "no room");
  CHECK(count == 0 && device == NULL);
}

static const char* metadata(const Direct* direct, const char* key) {
  const OrtApi* api = direct->client.api;
  return api->GetKeyValue(api->EpDevice_EpMetadata(direct->client.device), key);
}

/* Streams and zero copy need exactly this memory; the metadata says what an application may do. */
static void test_device(Direct* direct) {
  const OrtApi* api = direct->client.api;
  const OrtMemoryInfo* info =
      api->EpDevice_MemoryInfo(direct->client.device, OrtDeviceMemoryType_DEFAULT);
  CHECK(info != NULL);
  OrtMemoryInfoDeviceType type = OrtMemoryInfoDeviceType_CPU;
  api->MemoryInfoGetDeviceType(info, &type);
  CHECK(type == OrtMemoryInfoDeviceType_NPU);
  CHECK(api->MemoryInfoGetVendorId(info) == 0x4F525449u);
  OrtMemoryInfo* same = NULL;
  OK(&direct->client,
     api->CreateMemoryInfo_V2("any name", OrtMemoryInfoDeviceType_NPU, 0x4F525449u, 0,
                              OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, &same));
  const OrtEpApi* ep_api = api->GetEpApi();
  CHECK(ep_api->MemoryDevice_AreEqual(ep_api->MemoryInfo_GetMemoryDevice(info),
                                      ep_api->MemoryInfo_GetMemoryDevice(same)));
  api->ReleaseMemoryInfo(same);
  CHECK(api->EpDevice_MemoryInfo(direct->client.device, OrtDeviceMemoryType_HOST_ACCESSIBLE) ==
        NULL);
  CHECK(api->HardwareDevice_Type(api->EpDevice_Device(direct->client.device)) ==
        OrtHardwareDeviceType_CPU);
  CHECK(strcmp(metadata(direct, "interop_host_access"), "map") == 0);
  CHECK(strcmp(metadata(direct, "interop_device_id"), "0") == 0);
  CHECK(strlen(metadata(direct, "UUID")) == 32 &&
        strspn(metadata(direct, "UUID"), "0123456789abcdef") == 32);
  CHECK(strcmp(metadata(direct, "interop_memory_handle_types"),
               direct->client.minor >= 30
                   ? "ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD,"
                     "ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION"
                   : "ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD") == 0);
  CHECK(strcmp(metadata(direct, "interop_semaphore_types"),
               "ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD") == 0);
}

/* A machine whose CPU ONNX Runtime does not list still has the device. */
static void test_unlisted_hardware(Direct* direct) {
  OrtEpDevice* device = NULL;
  size_t count = 0;
  expect_ok(direct->factory->GetSupportedDevices(direct->factory, NULL, 0, &device, 8, &count),
            "unlisted");
  CHECK(count == 1);
  const OrtApi* api = direct->client.api;
  CHECK(strcmp(api->HardwareDevice_Vendor(api->EpDevice_Device(device)), "ort-interop-gen") == 0);
  api->GetEpApi()->ReleaseEpDevice(device);
}

static void test_wrong_devices(Direct* direct) {
  OrtEpFactory* factory = direct->factory;
  const OrtApi* api = direct->client.api;
  OrtExternalResourceImporterImpl* importer = (OrtExternalResourceImporterImpl*)factory;
  expect_refusal(factory->CreateExternalResourceImporterForDevice(factory, NULL, &importer),
                 ORT_INVALID_ARGUMENT, "ep_device is null", "null device");
  CHECK(importer == NULL);
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  OK(&direct->client, api->GetEpDevices(direct->client.env, &devices, &count));
  bool found = false;
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(api->EpDevice_EpName(devices[i]), "CPUExecutionProvider") == 0) {
      expect_refusal(
          factory->CreateExternalResourceImporterForDevice(factory, devices[i], &importer),
          ORT_INVALID_ARGUMENT, "'CPUExecutionProvider', not to HostInterop", "other EP");
      found = true;
    }
  }
  CHECK(found);
  OrtAllocator* allocator = NULL;
  OrtMemoryInfo* cpu = NULL;
  OK(&direct->client, api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
  expect_refusal(factory->CreateAllocator(factory, cpu, NULL, &allocator), ORT_INVALID_ARGUMENT,
                 "memory_info is of another device", "CPU allocator");
  expect_refusal(factory->CreateAllocator(factory, NULL, NULL, &allocator), ORT_INVALID_ARGUMENT,
                 "memory_info is null", "no memory info");
  OrtSyncStreamImpl* stream = NULL;
  expect_refusal(factory->CreateSyncStreamForDevice(
                     factory, api->GetEpApi()->MemoryInfo_GetMemoryDevice(cpu), NULL, &stream),
                 ORT_INVALID_ARGUMENT, "memory_device is of another device", "CPU stream");
  api->ReleaseMemoryInfo(cpu);
  OrtEp* ep = (OrtEp*)factory;
  expect_refusal(factory->CreateEp(factory, NULL, NULL, 0, NULL, NULL, &ep), ORT_INVALID_ARGUMENT,
                 "num_devices is 0", "no device");
  CHECK(ep == NULL && allocator == NULL && stream == NULL);
}

static void test_graphics(Direct* direct) {
  if (direct->client.minor < 25) {
    return;
  }
  OrtEpFactory* factory = direct->factory;
  OrtGraphicsInteropConfig config = {.version = 25, .graphics_api = ORT_GRAPHICS_API_VULKAN};
  expect_refusal(factory->InitGraphicsInterop(factory, direct->device, &config),
                 ORT_NOT_IMPLEMENTED, "graphics API", "init");
  expect_refusal(factory->DeinitGraphicsInterop(factory, direct->device), ORT_NOT_IMPLEMENTED,
                 "graphics API", "deinit");
  expect_refusal(factory->InitGraphicsInterop(factory, NULL, &config), ORT_INVALID_ARGUMENT,
                 "ep_device is null", "init");
  expect_refusal(factory->InitGraphicsInterop(factory, direct->device, NULL), ORT_INVALID_ARGUMENT,
                 "config is null", "init");
  config.version = 24;
  expect_refusal(factory->InitGraphicsInterop(factory, direct->device, &config),
                 ORT_INVALID_ARGUMENT, "version is 24", "init");
}

static const char* stat_of(const Direct* direct, OrtAllocator* allocator, const char* key,
                           char text[24]) {
  OrtKeyValuePairs* stats = NULL;
  expect_ok(allocator->GetStats(allocator, &stats), "stats");
  (void)snprintf(text, 24, "%s", direct->client.api->GetKeyValue(stats, key));
  direct->client.api->ReleaseKeyValuePairs(stats);
  return text;
}

static void test_allocator(Direct* direct) {
  OrtEpFactory* factory = direct->factory;
  const OrtMemoryInfo* info =
      direct->client.api->EpDevice_MemoryInfo(direct->client.device, OrtDeviceMemoryType_DEFAULT);
  OrtAllocator* allocator = NULL;
  expect_ok(factory->CreateAllocator(factory, info, NULL, &allocator), "allocator");
  CHECK(allocator->version == factory->ort_version_supported);
  char text[24];
  void* first = allocator->Alloc(allocator, 1000);
  void* second = allocator->Reserve(allocator, 1);
  CHECK(first != NULL && second != NULL && (uintptr_t)first % 64 == 0);
  CHECK(allocator->Alloc(allocator, 0) == NULL);
  CHECK(allocator->Alloc(allocator, SIZE_MAX) == NULL);
  CHECK(allocator->Alloc(allocator, SIZE_MAX - 63) == NULL);
  memset(first, 1, 1000);
  CHECK(strcmp(stat_of(direct, allocator, "InUse", text), "1001") == 0);
  allocator->Free(allocator, first);
  allocator->Free(allocator, NULL);
  allocator->Free(allocator, &text);
  CHECK(strcmp(stat_of(direct, allocator, "InUse", text), "1") == 0);
  CHECK(strcmp(stat_of(direct, allocator, "MaxInUse", text), "1001") == 0);
  CHECK(strcmp(stat_of(direct, allocator, "MaxAllocSize", text), "1000") == 0);
  CHECK(strcmp(stat_of(direct, allocator, "NumAllocs", text), "2") == 0);
  allocator->Free(allocator, second);
  factory->ReleaseAllocator(factory, allocator);
  factory->ReleaseAllocator(factory, NULL);
}

typedef struct Signaller {
  OrtInteropHostSemaphore* shared;
  double signalled_ms;
} Signaller;

static void* signal_late(void* argument) {
  Signaller* signaller = argument;
  client_sleep_ms(100);
  signaller->signalled_ms = client_now_ms();
  CHECK(ort_interop_host_signal(signaller->shared, 1) == 0);
  return NULL;
}

/* OrtEp::Sync waits for the streams that the session made, and for no others. */
static void test_sync(Direct* direct) {
  OrtEpFactory* factory = direct->factory;
  if (factory->ort_version_supported < 25) {
    return;
  }
  const OrtApi* api = direct->client.api;
  const OrtKeyValuePairs* metadata_pairs = api->EpDevice_EpMetadata(direct->device);
  OrtEp* ep = NULL;
  expect_ok(factory->CreateEp(factory, NULL, &metadata_pairs, 1, NULL, NULL, &ep), "ep");
  const OrtMemoryDevice* memory = api->GetEpApi()->MemoryInfo_GetMemoryDevice(
      api->EpDevice_MemoryInfo(direct->client.device, OrtDeviceMemoryType_DEFAULT));
  OrtSyncStreamImpl* own = NULL;
  OrtSyncStreamImpl* other = NULL;
  expect_ok(ep->CreateSyncStreamForDevice(ep, memory, &own), "own stream");
  expect_ok(factory->CreateSyncStreamForDevice(factory, memory, NULL, &other), "other stream");
  int fd = ort_interop_host_create_semaphore("sync", 0);
  Signaller signaller = {.shared = ort_interop_host_map_semaphore(fd)};
  OrtExternalSemaphoreDescriptor descriptor = {
      .version = 24,
      .type = ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD,
      .native_handle = (void*)(intptr_t)fd,
  };
  OrtExternalResourceImporterImpl* importer = direct->importer;
  OrtExternalSemaphoreHandle* semaphore = NULL;
  expect_ok(importer->ImportSemaphore(importer, &descriptor, &semaphore), "semaphore");
  fake_stream_impl = other;
  expect_ok(importer->WaitSemaphore(importer, semaphore, fake_stream, 2), "wait of the other");
  expect_ok(ep->Sync(ep), "sync beside a stream that is held");
  fake_stream_impl = own;
  expect_ok(importer->WaitSemaphore(importer, semaphore, fake_stream, 1), "wait of its own");
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, signal_late, &signaller) == 0);
  expect_ok(ep->Sync(ep), "sync");
  double returned_ms = client_now_ms();
  pthread_join(thread, NULL);
  CHECK(returned_ms >= signaller.signalled_ms);
  CHECK(ort_interop_host_signal(signaller.shared, 2) == 0);
  semaphore->Release(semaphore);
  other->Release(other);
  factory->ReleaseEp(factory, ep);
  own->Release(own); /* Streams may outlive their session. */
  ort_interop_host_unmap_semaphore(signaller.shared);
  close(fd);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  static const struct {
    const char* name;
    void (*run)(Direct*);
  } tests[] = {
      {"negotiation", test_negotiation},
      {"negotiation_downwards", test_negotiation_downwards},
      {"old_hosts", test_old_hosts},
      {"mute_hosts", test_mute_hosts},
      {"no_room", test_no_room},
      {"device", test_device},
      {"unlisted_hardware", test_unlisted_hardware},
      {"wrong_devices", test_wrong_devices},
      {"graphics", test_graphics},
      {"allocator", test_allocator},
      {"sync", test_sync},
  };
  static Direct direct;
  direct_open(&direct, argv[1], argv[2]);
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
    tests[i].run(&direct);
    CHECK(live_statuses() == 0);
    printf("ok %s\n", tests[i].name);
    fflush(stdout);
  }
  direct_close(&direct);
  printf("passed %zu\n", sizeof tests / sizeof tests[0]);
  return 0;
}
