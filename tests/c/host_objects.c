/*
 * Copies, streams, element types and registrations, through a real ONNX Runtime.
 *
 * host_objects ORT_LIBRARY EP_LIBRARY
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"

#define SIZE 8192
#define BIG (1 << 20)

typedef struct Rig {
  Client client;
  const char* ep_path;
  OrtExternalResourceImporter* importer;
  int semaphore_fd;
  OrtInteropHostSemaphore* shared;
  OrtExternalSemaphoreHandle* semaphore;
  uint64_t value; /* Where the tests have brought the semaphore. */
} Rig;

static OrtSyncStream* new_stream(const Rig* rig) {
  OrtSyncStream* stream = NULL;
  OK(&rig->client, rig->client.api->CreateSyncStreamForEpDevice(rig->client.device, NULL, &stream));
  return stream;
}

static const OrtMemoryInfo* device_memory(const Rig* rig) {
  return rig->client.api->EpDevice_MemoryInfo(rig->client.device, OrtDeviceMemoryType_DEFAULT);
}

/* A tensor of bytes that ONNX Runtime allocates through the EP's allocator. */
static OrtValue* device_tensor(const Rig* rig, OrtAllocator* allocator, int64_t bytes) {
  OrtValue* tensor = NULL;
  OK(&rig->client, rig->client.api->CreateTensorAsOrtValue(
                       allocator, &bytes, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, &tensor));
  return tensor;
}

static OrtValue* host_tensor(const Rig* rig, void* data, int64_t bytes) {
  OrtMemoryInfo* cpu = NULL;
  OrtValue* tensor = NULL;
  OK(&rig->client,
     rig->client.api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
  OK(&rig->client,
     rig->client.api->CreateTensorWithDataAsOrtValue(cpu, data, (size_t)bytes, &bytes, 1,
                                                     ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, &tensor));
  rig->client.api->ReleaseMemoryInfo(cpu);
  return tensor;
}

static OrtAllocator* shared_allocator(const Rig* rig) {
  OrtAllocator* allocator = NULL;
  OK(&rig->client,
     rig->client.api->GetSharedAllocator(rig->client.env, device_memory(rig), &allocator));
  CHECK(allocator != NULL);
  return allocator;
}

static void copy(const Rig* rig, OrtValue* from, OrtValue* to, OrtSyncStream* stream) {
  const OrtValue* source = from;
  OK(&rig->client, rig->client.api->CopyTensors(rig->client.env, &source, &to, stream, 1));
}

static void hold(Rig* rig, OrtSyncStream* stream) {
  ++rig->value;
  OK(&rig->client,
     rig->client.interop->WaitSemaphore(rig->importer, rig->semaphore, stream, rig->value));
}

/* Lets a held stream go, and waits until it has done everything. */
static void let_go(Rig* rig, OrtSyncStream* stream) {
  OK(&rig->client,
     rig->client.interop->SignalSemaphore(rig->importer, rig->semaphore, stream, rig->value + 1));
  CHECK(ort_interop_host_signal(rig->shared, rig->value) == 0);
  ++rig->value;
  CHECK(ort_interop_host_wait(rig->shared, rig->value, 10000000000) == 0);
}

static void test_synchronous_copies(Rig* rig) {
  static unsigned char in[SIZE];
  static unsigned char out[SIZE];
  memset(in, 7, SIZE);
  OrtAllocator* allocator = shared_allocator(rig);
  OrtValue* source = host_tensor(rig, in, SIZE);
  OrtValue* middle = device_tensor(rig, allocator, SIZE);
  OrtValue* other = device_tensor(rig, allocator, SIZE);
  OrtValue* target = host_tensor(rig, out, SIZE);
  copy(rig, source, middle, NULL);
  copy(rig, middle, other, NULL);
  copy(rig, other, other, NULL);
  copy(rig, other, target, NULL);
  CHECK(memcmp(in, out, SIZE) == 0);
  rig->client.api->ReleaseValue(source);
  rig->client.api->ReleaseValue(middle);
  rig->client.api->ReleaseValue(other);
  rig->client.api->ReleaseValue(target);
}

/* On a held stream nothing happens, the caller goes on, and a source on the host may change; memory
 * that is freed meanwhile stays until the copies in flight are done. */
static void test_streamed_copies(Rig* rig) {
  static unsigned char in[BIG];
  static unsigned char out[BIG];
  memset(in, 3, BIG);
  memset(out, 0, BIG);
  OrtAllocator* allocator = shared_allocator(rig);
  OrtSyncStream* stream = new_stream(rig);
  OrtValue* source = host_tensor(rig, in, BIG);
  OrtValue* middle = device_tensor(rig, allocator, BIG);
  OrtValue* target = host_tensor(rig, out, BIG);
  hold(rig, stream);
  copy(rig, source, middle, stream);
  copy(rig, middle, target, stream);
  memset(in, 9, BIG);
  rig->client.api->ReleaseValue(middle);
  CHECK(out[0] == 0);
  let_go(rig, stream);
  CHECK(out[0] == 3 && out[BIG - 1] == 3);
  rig->client.api->ReleaseValue(source);
  rig->client.api->ReleaseValue(target);
  rig->client.api->ReleaseSyncStream(stream);
}

/* Imported memory stays mapped until the work that streams hold for it is done. */
static void test_released_while_queued(Rig* rig) {
  static unsigned char out[SIZE];
  int fd = ort_interop_host_create_memory("queued", SIZE);
  CHECK(pwrite(fd, "imported", 8, SIZE - 8) == 8);
  OrtExternalMemoryHandle* memory = client_import(&rig->client, rig->importer, fd, SIZE, 0);
  const int64_t shape[] = {SIZE};
  OrtValue* source = client_tensor(&rig->client, rig->importer, memory,
                                   ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, shape, 1, 0);
  OrtValue* target = host_tensor(rig, out, SIZE);
  OrtSyncStream* stream = new_stream(rig);
  hold(rig, stream);
  copy(rig, source, target, stream);
  rig->client.interop->ReleaseExternalMemoryHandle(memory);
  rig->client.api->ReleaseValue(source);
  close(fd);
  let_go(rig, stream);
  CHECK(memcmp(out + SIZE - 8, "imported", 8) == 0);
  rig->client.api->ReleaseValue(target);
  rig->client.api->ReleaseSyncStream(stream);
}

static void test_batched_copies(Rig* rig) {
  enum { COUNT = 17 };
  static unsigned char in[COUNT][64];
  static unsigned char out[COUNT][64];
  OrtAllocator* allocator = shared_allocator(rig);
  OrtSyncStream* stream = new_stream(rig);
  OrtValue* sources[COUNT];
  OrtValue* middles[COUNT];
  OrtValue* targets[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    memset(in[i], i + 1, 64);
    sources[i] = host_tensor(rig, in[i], 64);
    middles[i] = device_tensor(rig, allocator, 64);
    targets[i] = host_tensor(rig, out[i], 64);
  }
  const OrtApi* api = rig->client.api;
  hold(rig, stream);
  OK(&rig->client,
     api->CopyTensors(rig->client.env, (const OrtValue* const*)sources, middles, stream, COUNT));
  OK(&rig->client,
     api->CopyTensors(rig->client.env, (const OrtValue* const*)middles, targets, stream, COUNT));
  CHECK(out[3][0] == 0);
  let_go(rig, stream);
  CHECK(memcmp(in, out, sizeof in) == 0);
  /* A batch with one pair that does not fit starts none of its copies. */
  memset(out, 0, sizeof out);
  OrtValue* small = host_tensor(rig, out[5], 32);
  OrtValue* kept = targets[5];
  targets[5] = small;
  REFUSED(&rig->client,
          api->CopyTensors(rig->client.env, (const OrtValue* const*)middles, targets, NULL, COUNT),
          ORT_INVALID_ARGUMENT, "[5] has 64 bytes");
  CHECK(out[0][0] == 0);
  targets[5] = kept;
  api->ReleaseValue(small);
  for (int i = 0; i < COUNT; ++i) {
    api->ReleaseValue(sources[i]);
    api->ReleaseValue(middles[i]);
    api->ReleaseValue(targets[i]);
  }
  api->ReleaseSyncStream(stream);
}

/* One stream waits for another, and the host for both, through the slots that ORT calls. */
static void test_notifications(Rig* rig) {
  const OrtEpApi* ep_api = rig->client.api->GetEpApi();
  OrtSyncStream* producer = new_stream(rig);
  OrtSyncStream* consumer = new_stream(rig);
  OrtSyncStreamImpl* impl = (OrtSyncStreamImpl*)(uintptr_t)ep_api->SyncStream_GetImpl(producer);
  OrtSyncNotificationImpl* notification = NULL;
  OK(&rig->client, impl->CreateNotification(impl, &notification));
  /* Not yet activated: nothing to wait for. */
  OK(&rig->client, notification->WaitOnHost(notification));
  OK(&rig->client, notification->WaitOnDevice(notification, consumer));
  static unsigned char in[64];
  static unsigned char out[64];
  memset(in, 5, sizeof in);
  OrtValue* source = host_tensor(rig, in, 64);
  OrtValue* middle = device_tensor(rig, shared_allocator(rig), 64);
  OrtValue* target = host_tensor(rig, out, 64);
  hold(rig, producer);
  copy(rig, source, middle, producer);
  OK(&rig->client, notification->Activate(notification));
  OK(&rig->client, notification->WaitOnDevice(notification, consumer));
  copy(rig, middle, target, consumer);
  client_sleep_ms(20);
  CHECK(out[0] == 0);
  CHECK(ort_interop_host_signal(rig->shared, rig->value) == 0);
  OK(&rig->client, notification->WaitOnHost(notification));
  notification->Release(notification);
  impl = (OrtSyncStreamImpl*)(uintptr_t)ep_api->SyncStream_GetImpl(consumer);
  OK(&rig->client, impl->Flush(impl));
  CHECK(out[0] == 5);
  rig->client.api->ReleaseValue(source);
  rig->client.api->ReleaseValue(middle);
  rig->client.api->ReleaseValue(target);
  rig->client.api->ReleaseSyncStream(producer);
  rig->client.api->ReleaseSyncStream(consumer);
}

/* Identity of every fixed-size type is the EP's; of strings it is not. ONNX numbers the types as
 * ORT does, but for the last three. */
static void test_element_types(Rig* rig) {
  static const struct {
    int onnx_type;
    ONNXTensorElementDataType type;
    size_t bits;
  } types[] = {
      {1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 32},
      {2, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 8},
      {3, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, 8},
      {4, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, 16},
      {5, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, 16},
      {6, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 32},
      {7, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 64},
      {9, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 8},
      {10, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 16},
      {11, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, 64},
      {12, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, 32},
      {13, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, 64},
      {16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, 16},
      {17, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN, 8},
      {18, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ, 8},
      {19, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2, 8},
      {20, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ, 8},
      {21, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4, 4},
      {22, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4, 4},
  };
  static const char* const identity[] = {"Identity"};
  const int64_t shape[] = {3, 16};
  int fd = ort_interop_host_create_memory("types", SIZE);
  char* outside = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  OrtExternalMemoryHandle* memory = client_import(&rig->client, rig->importer, fd, SIZE, 0);
  for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i) {
    OrtSession* session = client_session(&rig->client, identity, 1, types[i].onnx_type, shape, 2);
    const OrtEpDevice* device = NULL;
    OK(&rig->client, rig->client.api->SessionGetEpDeviceForOutputs(session, &device, 1));
    CHECK(device == rig->client.device);
    OrtValue* x = client_tensor(&rig->client, rig->importer, memory, types[i].type, shape, 2, 0);
    OrtValue* y = client_tensor(&rig->client, rig->importer, memory, types[i].type, shape, 2, 4096);
    size_t bytes = 48 * types[i].bits / 8;
    memset(outside, 0, SIZE);
    memset(outside, 1, bytes);
    client_run(&rig->client, session, NULL, x, &y);
    CHECK(memcmp(outside, outside + 4096, bytes) == 0 && outside[4096 + bytes] == 0);
    rig->client.api->ReleaseValue(x);
    rig->client.api->ReleaseValue(y);
    rig->client.api->ReleaseSession(session);
  }
  OrtSession* strings = client_session(&rig->client, identity, 1, 8, shape, 2);
  const OrtEpDevice* device = rig->client.device;
  OK(&rig->client, rig->client.api->SessionGetEpDeviceForOutputs(strings, &device, 1));
  CHECK(device != rig->client.device);
  rig->client.api->ReleaseSession(strings);
  rig->client.interop->ReleaseExternalMemoryHandle(memory);
  munmap(outside, SIZE);
  close(fd);
}

/* Types that some releases take for each other: a tensor is of the type asked for, or refused. */
static void test_newest_types(Rig* rig) {
  int fd = ort_interop_host_create_memory("newest", SIZE);
  OrtExternalMemoryHandle* memory = client_import(&rig->client, rig->importer, fd, SIZE, 0);
  const OrtApi* api = rig->client.api;
  const int64_t shape[] = {17};
  int made = 0;
  for (int type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1;
       type <= ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0; ++type) {
    const OrtExternalTensorDescriptor descriptor = {
        .version = 24,
        .element_type = (ONNXTensorElementDataType)type,
        .shape = shape,
        .rank = 1,
    };
    OrtValue* tensor = NULL;
    OrtStatus* status =
        rig->client.interop->CreateTensorFromMemory(rig->importer, memory, &descriptor, &tensor);
    if (status != NULL) {
      CHECK(tensor == NULL && rig->client.minor < 32);
      api->ReleaseStatus(status);
      continue;
    }
    OrtTensorTypeAndShapeInfo* info = NULL;
    ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    OK(&rig->client, api->GetTensorTypeAndShape(tensor, &info));
    OK(&rig->client, api->GetTensorElementType(info, &element));
    CHECK((int)element == type);
    api->ReleaseTensorTypeAndShapeInfo(info);
    api->ReleaseValue(tensor);
    ++made;
  }
  CHECK(made >= 1 && (rig->client.minor < 32 || made == 4));
  rig->client.interop->ReleaseExternalMemoryHandle(memory);
  close(fd);
}

/* Tensors without elements, and without dimensions, flow through. */
static void test_small_shapes(Rig* rig) {
  static const char* const operators[] = {"Identity", "Neg", "Identity"};
  static const struct {
    int64_t shape[2];
    size_t rank;
  } shapes[] = {{{0, 0}, 0}, {{0, 0}, 1}, {{3, 0}, 2}};
  int fd = ort_interop_host_create_memory("shapes", SIZE);
  float* outside = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  OrtExternalMemoryHandle* memory = client_import(&rig->client, rig->importer, fd, SIZE, 0);
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i) {
    OrtSession* session =
        client_session(&rig->client, operators, 3, 1, shapes[i].shape, shapes[i].rank);
    OrtValue* x =
        client_tensor(&rig->client, rig->importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                      shapes[i].shape, shapes[i].rank, 0);
    OrtValue* y =
        client_tensor(&rig->client, rig->importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                      shapes[i].shape, shapes[i].rank, 4096);
    outside[0] = 2.5f;
    outside[1024] = 0.0f;
    client_run(&rig->client, session, NULL, x, &y);
    CHECK(outside[1024] == (shapes[i].rank == 0 ? -2.5f : 0.0f));
    rig->client.api->ReleaseValue(x);
    rig->client.api->ReleaseValue(y);
    rig->client.api->ReleaseSession(session);
  }
  rig->client.interop->ReleaseExternalMemoryHandle(memory);
  munmap(outside, SIZE);
  close(fd);
}

/* The library under a second name: its device is equal, so its importer takes the first's stream. */
static void test_second_registration(Rig* rig) {
  const OrtApi* api = rig->client.api;
  /* Made first: on 1.24 and 1.28 the shared allocator is gone once two registrations have it. */
  OrtValue* x = device_tensor(rig, shared_allocator(rig), 4);
  OrtValue* y = device_tensor(rig, shared_allocator(rig), 4);
  OK(&rig->client,
     api->RegisterExecutionProviderLibrary(rig->client.env, "host_again", rig->ep_path));
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  const OrtEpDevice* second = NULL;
  OK(&rig->client, api->GetEpDevices(rig->client.env, &devices, &count));
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(api->EpDevice_EpName(devices[i]), EP_NAME_UNDER_TEST) == 0 &&
        devices[i] != rig->client.device) {
      second = devices[i];
    }
  }
  CHECK(second != NULL);
  OrtExternalResourceImporter* importer = NULL;
  OK(&rig->client, rig->client.interop->CreateExternalResourceImporterForDevice(second, &importer));
  OrtSyncStream* stream = new_stream(rig);
  int fd = ort_interop_host_create_semaphore("second", 0);
  OrtExternalSemaphoreHandle* semaphore = client_import_semaphore(&rig->client, importer, fd);
  OrtInteropHostSemaphore* shared = ort_interop_host_map_semaphore(fd);
  OK(&rig->client, rig->client.interop->SignalSemaphore(importer, semaphore, stream, 1));
  CHECK(ort_interop_host_wait(shared, 1, 10000000000) == 0);
  /* ORT lets a session run on the stream of an equal device, and the registrations share theirs. */
  static const char* const identity[] = {"Identity"};
  const int64_t shape[] = {4};
  OrtSession* session = client_session(&rig->client, identity, 1, 2, shape, 1);
  OrtSyncStream* foreign = NULL;
  OK(&rig->client, api->CreateSyncStreamForEpDevice(second, NULL, &foreign));
  OrtRunOptions* options = client_run_options(&rig->client, foreign, true);
  void* in = NULL;
  void* out = NULL;
  OK(&rig->client, api->GetTensorMutableData(x, &in));
  OK(&rig->client, api->GetTensorMutableData(y, &out));
  memcpy(in, "run", 4);
  memset(out, 0, 4);
  client_run(&rig->client, session, options, x, &y);
  CHECK(memcmp(out, "run", 4) == 0);
  api->ReleaseValue(x);
  api->ReleaseValue(y);
  api->ReleaseRunOptions(options);
  api->ReleaseSyncStream(foreign);
  api->ReleaseSession(session);
  /* A handle is of the importer that made it. */
  REFUSED(&rig->client, rig->client.interop->SignalSemaphore(rig->importer, semaphore, stream, 2),
          ORT_INVALID_ARGUMENT, "not a live semaphore handle");
  ort_interop_host_unmap_semaphore(shared);
  close(fd);
  rig->client.interop->ReleaseExternalSemaphoreHandle(semaphore);
  api->ReleaseSyncStream(stream);
  rig->client.interop->ReleaseExternalResourceImporter(importer);
  OK(&rig->client, api->UnregisterExecutionProviderLibrary(rig->client.env, "host_again"));
}

/* A stream that is held when everything else ends finishes its work all the same. */
static void test_end_while_held(Rig* rig) {
  OrtSyncStream* stream = new_stream(rig);
  hold(rig, stream);
  OK(&rig->client,
     rig->client.interop->SignalSemaphore(rig->importer, rig->semaphore, stream, rig->value + 1));
  rig->client.api->ReleaseSyncStream(stream);
  rig->client.interop->ReleaseExternalSemaphoreHandle(rig->semaphore);
  rig->client.interop->ReleaseExternalResourceImporter(rig->importer);
  client_close(&rig->client);
  CHECK(ort_interop_host_signal(rig->shared, rig->value) == 0);
  CHECK(ort_interop_host_wait(rig->shared, rig->value + 1, 10000000000) == 0);
  client_sleep_ms(50); /* The worker frees what it holds after the signal. */
  ort_interop_host_unmap_semaphore(rig->shared);
  close(rig->semaphore_fd);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  static const struct {
    const char* name;
    void (*run)(Rig*);
  } tests[] = {
      {"synchronous_copies", test_synchronous_copies},
      {"streamed_copies", test_streamed_copies},
      {"released_while_queued", test_released_while_queued},
      {"batched_copies", test_batched_copies},
      {"notifications", test_notifications},
      {"element_types", test_element_types},
      {"newest_types", test_newest_types},
      {"small_shapes", test_small_shapes},
      {"second_registration", test_second_registration},
      {"end_while_held", test_end_while_held},
  };
  static Rig rig;
  client_open(&rig.client, argv[1], argv[2]);
  rig.ep_path = argv[2];
  OK(&rig.client,
     rig.client.interop->CreateExternalResourceImporterForDevice(rig.client.device, &rig.importer));
  rig.semaphore_fd = ort_interop_host_create_semaphore("rig", 0);
  rig.shared = ort_interop_host_map_semaphore(rig.semaphore_fd);
  CHECK(rig.shared != NULL);
  rig.semaphore = client_import_semaphore(&rig.client, rig.importer, rig.semaphore_fd);
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
    tests[i].run(&rig);
    printf("ok %s\n", tests[i].name);
    fflush(stdout);
  }
  printf("passed %zu\n", sizeof tests / sizeof tests[0]);
  return 0;
}
