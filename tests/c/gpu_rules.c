/*
 * What the driver of a GPU's EP must do beyond the importer's common rules: probes, work that is put
 * off, graphics interop, several devices, machines without a driver.
 *
 * gpu_rules ORT_LIBRARY EP_LIBRARY
 */
#include <pthread.h>
#include <unistd.h>

#include "gpu_mock.h"

#define SIZE 8192
#define ELEMENTS (SIZE / 4)

static Mock mock;
static Client client;
static const char* ep_path;

static const OrtEpDevice* devices[8];
static size_t device_count;

/* Registers the EP and collects its devices. */
static void open_ep(void) {
  const OrtApi* api = client.api;
  OK(&client, api->RegisterExecutionProviderLibrary(client.env, "gpu", ep_path));
  const OrtEpDevice* const* all = NULL;
  size_t count = 0;
  OK(&client, api->GetEpDevices(client.env, &all, &count));
  device_count = 0;
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(api->EpDevice_EpName(all[i]), EP_NAME_UNDER_TEST) == 0) {
      devices[device_count++] = all[i];
    }
  }
  client.device = device_count > 0 ? devices[0] : NULL;
}

static void close_ep(void) {
  OK(&client, client.api->UnregisterExecutionProviderLibrary(client.env, "gpu"));
  mock_settle(&mock, 0);
  mock_check(&mock);
  mock.forget_calls();
}

static OrtExternalResourceImporter* importer_for(const OrtEpDevice* device) {
  OrtExternalResourceImporter* importer = NULL;
  OK(&client, client.interop->CreateExternalResourceImporterForDevice(device, &importer));
  CHECK(importer != NULL);
  return importer;
}

static const char* metadata(const OrtEpDevice* device, const char* key) {
  return client.api->GetKeyValue(client.api->EpDevice_EpMetadata(device), key);
}

static size_t calls_of(const char* function) {
  size_t count = 0;
  size_t length = strlen(function);
  for (size_t i = 0; i < mock.call_count(); ++i) {
    count += strncmp(mock.call(i), function, length) == 0 && mock.call(i)[length] == '(';
  }
  return count;
}

/* A driver that does not start, or has no devices, offers none; nothing fails. */
static void test_no_devices(void) {
  static const struct {
    const char* option;
    long value;
    long otherwise;
  } machines[] = {{"init", 100, 0}, {"init", 999, 0}, {"devices", 0, 1}};
  for (size_t i = 0; i < sizeof machines / sizeof machines[0]; ++i) {
    mock.set_option(machines[i].option, machines[i].value);
    open_ep();
    CHECK(device_count == 0);
    close_ep();
    mock.set_option(machines[i].option, machines[i].otherwise);
  }
}

/* The GPU is offered although ONNX Runtime lists none, with what an application matches it by. */
static void test_identity(void) {
  mock.set_option("luid", 66);
  open_ep();
  CHECK(device_count == 1);
  CHECK(strlen(metadata(devices[0], "UUID")) == 32);
  CHECK(strcmp(metadata(devices[0], "LUID"), "66") == 0);
  CHECK(strstr(metadata(devices[0], "interop_memory_handle_types"), "MEMORY_OPAQUE_FD") != NULL);
  CHECK(strstr(metadata(devices[0], "interop_semaphore_types"),
               "VK_TIMELINE_SEMAPHORE_OPAQUE_FD") != NULL);
  CHECK(strcmp(metadata(devices[0], "interop_host_access"), "none") == 0);
  CHECK(client.api->HardwareDevice_Type(client.api->EpDevice_Device(devices[0])) ==
        OrtHardwareDeviceType_GPU);
  CHECK(client.api->HardwareDevice_VendorId(client.api->EpDevice_Device(devices[0])) ==
        GPU_VENDOR_ID);
  close_ep();
  mock.set_option("luid", 0);
}

/* No probe makes a context: a machine's GPUs are left alone until one is used. */
static void test_lazy_context(void) {
  open_ep();
  CHECK(mock.live("context") == 0);
  OrtExternalResourceImporter* importer = importer_for(devices[0]);
  bool can = false;
  OK(&client, client.interop->CanImportMemory(
                  importer, ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD, &can));
  CHECK(can && mock.live("context") == 0);
  client.interop->ReleaseExternalResourceImporter(importer);
  close_ep();
}

/* A driver without timeline semaphores: the probe says so, and no import reaches it. */
static void refuse_timeline(const char* option, long value, long otherwise) {
  mock.set_option(option, value);
  open_ep();
  OrtExternalResourceImporter* importer = importer_for(devices[0]);
  bool can = true;
  OK(&client, client.interop->CanImportSemaphore(
                  importer, ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD, &can));
  CHECK(!can);
  CHECK(strstr(metadata(devices[0], "interop_semaphore_types"), "OPAQUE_FD") == NULL);
  int fd = (int)mock.export_semaphore();
  const OrtExternalSemaphoreDescriptor descriptor = {
      .version = 24,
      .type = ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD,
      .native_handle = (void*)(intptr_t)fd,
  };
  OrtExternalSemaphoreHandle* handle = NULL;
  mock.forget_calls();
  REFUSED(&client, client.interop->ImportSemaphore(importer, &descriptor, &handle),
          ORT_NOT_IMPLEMENTED, "cannot be imported by mock device 0");
  CHECK(handle == NULL && calls_of(GPU_PREFIX "ImportExternalSemaphore") == 0);
  mock.close(fd);
  client.interop->ReleaseExternalResourceImporter(importer);
  close_ep();
  mock.set_option(option, otherwise);
}

static void test_probes(void) {
  refuse_timeline("timeline", 0, 1);
#ifdef GPU_ASKS_DRIVER
  /* Old drivers know no such type; some that declare it refuse it. */
  mock.set_option("timeline_refusal", 1);
  refuse_timeline("timeline", 0, 1);
  mock.set_option("timeline_refusal", 801);
  refuse_timeline("version", 50221153, 60342134);
#else
  mock.set_option("host_register", 0);
  open_ep();
  OrtExternalResourceImporter* importer = importer_for(devices[0]);
  bool can = true;
  OK(&client, client.interop->CanImportMemory(
                  importer, ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION, &can));
  CHECK(!can);
  client.interop->ReleaseExternalResourceImporter(importer);
  close_ep();
  mock.set_option("host_register", 1);
#endif
}

/* An imported memory and semaphore, and a stream that waits for value 1 of the semaphore. */
typedef struct Held {
  OrtExternalResourceImporter* importer;
  OrtExternalMemoryHandle* memory;
  OrtExternalSemaphoreHandle* semaphore;
  OrtSyncStream* stream;
  OrtValue* tensor;
  int memory_fd;
  int semaphore_fd;
  void* value;
  float* outside;
} Held;

static Held hold(void) {
  Held held = {.importer = importer_for(devices[0]), .stream = client_stream(&client)};
  static const int64_t shape[] = {ELEMENTS};
  held.memory_fd = (int)mock.export_memory(SIZE);
  held.semaphore_fd = (int)mock.export_semaphore();
  held.value = mock.map(held.semaphore_fd, 8);
  held.outside = mock.map(held.memory_fd, SIZE);
  held.memory = client_import(&client, held.importer, held.memory_fd, SIZE, 0);
  held.semaphore = client_import_semaphore(&client, held.importer, held.semaphore_fd);
  held.tensor = client_tensor(&client, held.importer, held.memory,
                              ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, shape, 1, 0);
  OK(&client, client.interop->WaitSemaphore(held.importer, held.semaphore, held.stream, 1));
  return held;
}

/* Everything that is not released yet. */
static void let_go(Held* held) {
  client.api->ReleaseValue(held->tensor);
  client.interop->ReleaseExternalMemoryHandle(held->memory);
  client.interop->ReleaseExternalSemaphoreHandle(held->semaphore);
  if (held->stream != NULL) {
    client.api->ReleaseSyncStream(held->stream);
  }
  client.interop->ReleaseExternalResourceImporter(held->importer);
  mock.unmap(held->value, 8);
  mock.unmap(held->outside, SIZE);
  mock.close(held->memory_fd);
  mock.close(held->semaphore_fd);
}

static void* release_all(void* argument) {
  Held* held = argument;
  client.api->ReleaseValue(held->tensor);
  client.interop->ReleaseExternalMemoryHandle(held->memory);
  client.interop->ReleaseExternalSemaphoreHandle(held->semaphore);
  client.api->ReleaseSyncStream(held->stream);
  client.interop->ReleaseExternalResourceImporter(held->importer);
  return NULL;
}

/* Releases on a thread that never saw the driver, while the stream waits: none blocks, and the
 * driver's objects live until the work is done. */
static void test_release_while_waiting(void) {
  open_ep();
  Held held = hold();
  OK(&client, client.interop->SignalSemaphore(held.importer, held.semaphore, held.stream, 2));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, release_all, &held) == 0);
  pthread_join(thread, NULL);
  CHECK(mock.live("mapping") == 1 && mock.live("external memory") == 1);
  CHECK(mock.live("external semaphore") == 1 && mock.live("stream") >= 1);
  semaphore_set(held.value, 1);
  mock_settle(&mock, MOCK_CONTEXTS);
  CHECK(semaphore_value(held.value) == 2);
  mock.unmap(held.value, 8);
  mock.unmap(held.outside, SIZE);
  mock.close(held.memory_fd);
  mock.close(held.semaphore_fd);
  close_ep();
}

/* The same with the library unregistered before the signal: it ends by itself. */
static void test_unregister_while_waiting(void) {
  open_ep();
  Held held = hold();
  OK(&client, client.interop->SignalSemaphore(held.importer, held.semaphore, held.stream, 2));
  (void)release_all(&held);
  OK(&client, client.api->UnregisterExecutionProviderLibrary(client.env, "gpu"));
  CHECK(mock.live("stream") >= 1 && mock.live("context") == MOCK_CONTEXTS);
  semaphore_set(held.value, 1);
  mock_settle(&mock, 0);
  CHECK(semaphore_value(held.value) == 2);
  mock.unmap(held.value, 8);
  mock.unmap(held.outside, SIZE);
  mock.close(held.memory_fd);
  mock.close(held.semaphore_fd);
  mock_check(&mock);
}

static OrtValue* host_tensor(float* data) {
  OrtMemoryInfo* info = NULL;
  OrtValue* value = NULL;
  static const int64_t shape[] = {ELEMENTS};
  OK(&client, client.api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info));
  OK(&client, client.api->CreateTensorWithDataAsOrtValue(
                  info, data, SIZE, shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  client.api->ReleaseMemoryInfo(info);
  return value;
}

/* Copies of pageable memory behind a wait do not block the caller, who could not signal then. The
 * source may change at once. */
static void test_copies_behind_wait(void) {
  static float in[ELEMENTS];
  static float out[ELEMENTS];
  open_ep();
  Held held = hold();
  OrtValue* source = host_tensor(in);
  OrtValue* target = host_tensor(out);
  const OrtValue* const_source = source;
  const OrtValue* const_tensor = held.tensor;
  in[5] = 50;
  OK(&client, client.api->CopyTensors(client.env, &const_source, &held.tensor, held.stream, 1));
  in[5] = 51;
  OK(&client, client.api->CopyTensors(client.env, &const_tensor, &target, held.stream, 1));
  CHECK(held.outside[5] == 0 && out[5] == 0);
  OK(&client, client.interop->SignalSemaphore(held.importer, held.semaphore, held.stream, 2));
  semaphore_set(held.value, 1);
  OrtSyncStreamImpl* impl =
      (OrtSyncStreamImpl*)client.api->GetEpApi()->SyncStream_GetImpl(held.stream);
  OK(&client, impl->Flush(impl));
  CHECK(semaphore_value(held.value) == 2 && held.outside[5] == 50 && out[5] == 50);
  /* Batches give each copy its own stream, or none. */
  const OrtValue* sources[] = {source, source};
  OrtValue* targets[] = {held.tensor, held.tensor};
  in[6] = 60;
  OK(&client, client.api->CopyTensors(client.env, sources, targets, NULL, 2));
  CHECK(held.outside[6] == 60);
  client.api->ReleaseValue(source);
  client.api->ReleaseValue(target);
  let_go(&held);
  close_ep();
}

static OrtAllocator* shared_allocator(void) {
  OrtAllocator* allocator = NULL;
  OK(&client, client.api->CreateSharedAllocator(client.env, devices[0], OrtDeviceMemoryType_DEFAULT,
                                                OrtDeviceAllocator, NULL, &allocator));
  return allocator;
}

static void release_allocator(void) {
  OK(&client,
     client.api->ReleaseSharedAllocator(client.env, devices[0], OrtDeviceMemoryType_DEFAULT));
}

/* Allocations that the driver has not given back. */
static size_t allocations(void) {
  return mock.live("memory") + mock.live("freed memory");
}

static void settle_allocations(size_t count) {
  for (int i = 0; i < 10000 && allocations() != count; ++i) {
    client_sleep_ms(1);
  }
  CHECK(allocations() == count);
}

/* A tensor of the allocator's, which the stream's next work writes to. */
static OrtValue* tensor_in_use(const Held* held, OrtAllocator* allocator) {
  static const int64_t shape[] = {ELEMENTS};
  OrtValue* value = NULL;
  OK(&client, client.api->CreateTensorAsOrtValue(allocator, shape, 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  const OrtValue* source = held->tensor;
  OK(&client, client.api->CopyTensors(client.env, &source, &value, held->stream, 1));
  return value;
}

/* Free follows the stream: memory that queued work uses is not given back before. */
static void free_follows_stream(bool pools) {
  mock.set_option("pools", pools);
  open_ep();
  Held held = hold();
  OrtAllocator* allocator = shared_allocator();
  size_t before = allocations();
  OrtValue* value = tensor_in_use(&held, allocator);
  CHECK(allocations() == before + 1 && mock.live("pool") == pools);
  client.api->ReleaseValue(value);
  client_sleep_ms(20);
  CHECK(allocations() == before + 1);
  semaphore_set(held.value, 1);
  settle_allocations(before);
  /* What the device lacks is null memory, which ONNX Runtime passes on. */
  CHECK(allocator->Alloc(allocator, (size_t)1 << 40) == NULL);
  release_allocator();
  let_go(&held);
  close_ep();
  mock.set_option("pools", 1);
}

static void test_free_follows_stream(void) {
  free_follows_stream(true);
  free_follows_stream(false);
}

/* Memory is there for every stream once Alloc has returned; with nothing queued, Free is one call. */
static void test_allocation_calls(void) {
  static const char* const names[] = {GPU_POOL_ALLOC, GPU_PREFIX "StreamSynchronize",
                                      GPU_POOL_FREE};
  open_ep();
  OrtAllocator* allocator = shared_allocator();
  allocator->Free(allocator, allocator->Alloc(allocator, SIZE));
  mock.forget_calls();
  allocator->Free(allocator, allocator->Alloc(allocator, SIZE));
  size_t found = 0;
  for (size_t i = 0; i < mock.call_count(); ++i) {
    const char* call = mock.call(i);
    size_t length = strcspn(call, "(");
    if (strstr(call, "Current") == NULL && strstr(call, "etDevice(") == NULL) {
      CHECK(found < 3 && strlen(names[found]) == length &&
            strncmp(call, names[found], length) == 0);
      ++found;
    }
  }
  CHECK(found == 3);
  release_allocator();
  close_ep();
}

/* The stream's next frame: it waits for `value` and signals the one after it. */
static void enqueue_frame(const Held* held, uint64_t value) {
  OK(&client, client.interop->WaitSemaphore(held->importer, held->semaphore, held->stream, value));
  OK(&client,
     client.interop->SignalSemaphore(held->importer, held->semaphore, held->stream, value + 1));
}

/* Produces the frame that waits for `value`, and waits for its end. */
static void produce_frame(const Held* held, uint64_t value) {
  semaphore_set(held->value, value);
  for (int i = 0; i < 10000 && semaphore_value(held->value) != value + 1; ++i) {
    client_sleep_ms(1);
  }
  CHECK(semaphore_value(held->value) == value + 1);
}

/* What a thread that still has to produce a frame may need of the driver. */
static void use_driver(OrtAllocator* allocator) {
  client.api->ReleaseSyncStream(client_stream(&client));
  allocator->Free(allocator, allocator->Alloc(allocator, SIZE));
}

/* Memory is freed behind a frame, and the next frame waits when its turn comes. A call that blocks until
 * the device is idle would be an offence now. */
static void free_behind_frame(bool pools) {
  mock.set_option("pools", pools);
  open_ep();
  Held held = hold();
  OrtAllocator* allocator = shared_allocator();
  size_t before = allocations();
  OrtValue* value = tensor_in_use(&held, allocator);
  OK(&client, client.interop->SignalSemaphore(held.importer, held.semaphore, held.stream, 2));
  client.api->ReleaseValue(value);
  enqueue_frame(&held, 3);
  produce_frame(&held, 1);
  if (pools) {
    /* The frame before is done, so the memory goes although the stream has work. */
    settle_allocations(before);
    use_driver(allocator);
  } else {
    use_driver(allocator);
    client_sleep_ms(20);
    CHECK(allocations() == before + 2);
  }
  produce_frame(&held, 3);
  settle_allocations(before);
  release_allocator();
  let_go(&held);
  close_ep();
  mock.set_option("pools", 1);
}

static void test_free_behind_frame(void) {
  free_behind_frame(true);
  free_behind_frame(false);
}

static OrtExternalMemoryHandle* import_page(OrtExternalResourceImporter* importer) {
  static _Alignas(65536) char page[65536];
  const OrtExternalMemoryDescriptor descriptor = {
      .version = 30,
      .handle_type = ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION,
      .native_handle = page,
      .size_bytes = sizeof page,
  };
  OrtExternalMemoryHandle* handle = NULL;
  if (client.minor >= 30) {
    OK(&client, client.interop->ImportMemory(importer, &descriptor, &handle));
  }
  return handle;
}

/* The same with imports: they are given back when the device is idle. */
static void test_release_behind_frame(void) {
  open_ep();
  Held held = hold();
  OrtAllocator* allocator = shared_allocator();
  size_t pages = client.minor >= 30;
  OrtExternalMemoryHandle* memory = client_import(&client, held.importer, held.memory_fd, SIZE, 0);
  OrtExternalMemoryHandle* page = import_page(held.importer);
  OrtExternalSemaphoreHandle* semaphore =
      client_import_semaphore(&client, held.importer, held.semaphore_fd);
  OK(&client, client.interop->SignalSemaphore(held.importer, held.semaphore, held.stream, 2));
  client.interop->ReleaseExternalMemoryHandle(memory);
  client.interop->ReleaseExternalMemoryHandle(page);
  client.interop->ReleaseExternalSemaphoreHandle(semaphore);
  enqueue_frame(&held, 3);
  produce_frame(&held, 1);
  use_driver(allocator);
  client_sleep_ms(20);
  CHECK(mock.live("mapping") == 2 && mock.live("external semaphore") == 2);
  CHECK(mock.live("registration") == pages);
  produce_frame(&held, 3);
  for (int i = 0;
       i < 10000 &&
       mock.live("mapping") + mock.live("external semaphore") + mock.live("registration") != 2;
       ++i) {
    client_sleep_ms(1);
  }
  CHECK(mock.live("mapping") == 1 && mock.live("external semaphore") == 1);
  CHECK(mock.live("registration") == 0);
  release_allocator();
  let_go(&held);
  close_ep();
}

/* A program that enqueues its next frame as soon as the last one is done gets its imports back all the
 * same: nearly always at once, else with the next frame's. */
static void test_release_between_frames(void) {
  enum { FRAMES = 200 };
  open_ep();
  Held held = hold();
  OK(&client, client.interop->SignalSemaphore(held.importer, held.semaphore, held.stream, 2));
  OrtSyncStreamImpl* impl =
      (OrtSyncStreamImpl*)client.api->GetEpApi()->SyncStream_GetImpl(held.stream);
  uint64_t value = 1;
  size_t back = 0;
  for (int i = 0; i < FRAMES; ++i) {
    OrtExternalMemoryHandle* memory =
        client_import(&client, held.importer, held.memory_fd, SIZE, 0);
    client.interop->ReleaseExternalMemoryHandle(memory);
    CHECK(mock.live("mapping") >= 2);
    semaphore_set(held.value, value);
    OK(&client, impl->Flush(impl));
    value += 2;
    enqueue_frame(&held, value);
    back += mock.live("mapping") == 1;
  }
  CHECK(back > FRAMES * 3 / 4);
  produce_frame(&held, value);
  let_go(&held);
  close_ep();
}

/* Copies that wait need many pinned buffers. When they are too many to keep, the surplus is not given
 * back while a stream waits. */
static void test_surplus_behind_wait(void) {
  enum { ROWS = 17, ROW = 1 << 20 };
  static float data[ROW + ROW / 4];
  open_ep();
  Held held = hold();
  OrtAllocator* allocator = shared_allocator();
  const int64_t shapes[] = {ROW, ROW + ROW / 4};
  OrtMemoryInfo* info = NULL;
  OK(&client, client.api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info));
  OrtValue* from[2];
  OrtValue* to[2];
  for (size_t i = 0; i < 2; ++i) {
    OK(&client, client.api->CreateTensorWithDataAsOrtValue(
                    info, data, (size_t)shapes[i] * sizeof data[0], &shapes[i], 1,
                    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &from[i]));
    OK(&client, client.api->CreateTensorAsOrtValue(allocator, &shapes[i], 1,
                                                   ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &to[i]));
  }
  client.api->ReleaseMemoryInfo(info);
  const OrtValue* source = from[0];
  for (int i = 0; i < ROWS; ++i) {
    OK(&client, client.api->CopyTensors(client.env, &source, &to[0], held.stream, 1));
  }
  OK(&client, client.interop->SignalSemaphore(held.importer, held.semaphore, held.stream, 2));
  enqueue_frame(&held, 3);
  produce_frame(&held, 1);
  CHECK(mock.live("host memory") == ROWS);
  source = from[1];
  OK(&client, client.api->CopyTensors(client.env, &source, &to[1], held.stream, 1));
  CHECK(mock.live("host memory") == ROWS + 1);
  produce_frame(&held, 3);
  for (int i = 0; i < 10000 && mock.live("host memory") != 1; ++i) {
    client_sleep_ms(1);
  }
  CHECK(mock.live("host memory") == 1);
  for (size_t i = 0; i < 2; ++i) {
    client.api->ReleaseValue(from[i]);
    client.api->ReleaseValue(to[i]);
  }
  release_allocator();
  let_go(&held);
  close_ep();
}

/* Streams and memory of one device are refused on another, with both named. */
static void test_two_devices(void) {
  mock.set_option("devices", 2);
  open_ep();
  CHECK(device_count == 2);
  CHECK(strcmp(metadata(devices[0], "UUID"), metadata(devices[1], "UUID")) != 0);
  Held held = hold();
  OrtExternalResourceImporter* other = importer_for(devices[1]);
  const OrtExternalTensorDescriptor scalar = {.version = 24,
                                              .element_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT};
  OrtValue* tensor = NULL;
  REFUSED(&client, client.interop->CreateTensorFromMemory(other, held.memory, &scalar, &tensor),
          ORT_INVALID_ARGUMENT, "of device 0 (mock device 0), the importer is for device 1");
  OrtExternalSemaphoreHandle* semaphore =
      client_import_semaphore(&client, other, held.semaphore_fd);
  REFUSED(&client, client.interop->WaitSemaphore(other, semaphore, held.stream, 1),
          ORT_INVALID_ARGUMENT, "of device 0 (mock device 0), the call is for device 1");
  client.interop->ReleaseExternalSemaphoreHandle(semaphore);
  semaphore_set(held.value, 1);
  client.interop->ReleaseExternalResourceImporter(other);
  let_go(&held);
  mock_settle(&mock, 2 * MOCK_CONTEXTS);
  close_ep();
  mock.set_option("devices", 1);
}

static OrtStatus* init_graphics(OrtGraphicsApi graphics, void* queue, const char* key,
                                const char* option) {
  OrtKeyValuePairs* options = NULL;
  client.api->CreateKeyValuePairs(&options);
  if (key != NULL) {
    client.api->AddKeyValuePair(options, key, option);
  }
  const OrtGraphicsInteropConfig config = {.version = 25,
                                           .graphics_api = graphics,
                                           .command_queue = queue,
                                           .additional_options = options};
  OrtStatus* status = client.interop->InitGraphicsInteropForEpDevice(devices[0], &config);
  client.api->ReleaseKeyValuePairs(options);
  return status;
}

static void test_graphics(void) {
  if (client.minor < 25) {
    return;
  }
  open_ep();
  static char queue;
  const OrtInteropApi* interop = client.interop;
  REFUSED(&client, init_graphics((OrtGraphicsApi)9, NULL, NULL, NULL), ORT_INVALID_ARGUMENT,
          "graphics_api is 9");
  REFUSED(&client,
          init_graphics(ORT_GRAPHICS_API_VULKAN, NULL, "UUID", "00000000000000000000000000000000"),
          ORT_INVALID_ARGUMENT,
          "UUID is '00000000000000000000000000000000', but ep_device is mock");
  REFUSED(&client, init_graphics(ORT_GRAPHICS_API_VULKAN, NULL, "LUID", "1"), ORT_INVALID_ARGUMENT,
          "whose LUID is 'not known'");
  REFUSED(&client, interop->DeinitGraphicsInteropForEpDevice(devices[0]), ORT_INVALID_ARGUMENT,
          "has no graphics interop");
  OK(&client, init_graphics(ORT_GRAPHICS_API_VULKAN, NULL, "UUID", metadata(devices[0], "UUID")));
  REFUSED(&client, init_graphics(ORT_GRAPHICS_API_VULKAN, NULL, NULL, NULL), ORT_INVALID_ARGUMENT,
          "has graphics interop already");
  OK(&client, interop->DeinitGraphicsInteropForEpDevice(devices[0]));
  CHECK(mock.live("context") == 0);
#ifndef GPU_ASKS_DRIVER
  /* Plain where the application does not want it, or the device cannot. */
  OK(&client, init_graphics(ORT_GRAPHICS_API_D3D12, &queue, "cig", "0"));
  CHECK(mock.live("context") == 0);
  OK(&client, interop->DeinitGraphicsInteropForEpDevice(devices[0]));
  mock.set_option("cig", 0);
  OK(&client, init_graphics(ORT_GRAPHICS_API_D3D12, &queue, NULL, NULL));
  CHECK(mock.live("context") == 0);
  OK(&client, interop->DeinitGraphicsInteropForEpDevice(devices[0]));
  mock.set_option("cig", 1);
  /* A refusal leaves it as it was. */
  mock.fail("cuCtxCreate", 1, 999);
  REFUSED(&client, init_graphics(ORT_GRAPHICS_API_D3D12, &queue, NULL, NULL), ORT_EP_FAIL,
          "cuCtxCreate failed: CUDA_ERROR_UNKNOWN (999)");
  CHECK(mock.live("context") == 0);
  /* What is made from now on is in the context that shares the queue. */
  OK(&client, init_graphics(ORT_GRAPHICS_API_D3D12, &queue, NULL, NULL));
  CHECK(mock.live("context") == 1 && mock.context_balance() == 0);
  Held held = hold();
  CHECK(mock.live("context") == 1 && calls_of("cuDevicePrimaryCtxRetain") == 0);
  OK(&client, interop->DeinitGraphicsInteropForEpDevice(devices[0]));
  CHECK(mock.live("context") == 1);
  semaphore_set(held.value, 1);
  let_go(&held);
  mock_settle(&mock, 0);
  /* Buffers of copies stay for later ones, so they are not in that context. */
  OK(&client, init_graphics(ORT_GRAPHICS_API_D3D12, &queue, NULL, NULL));
  held = hold();
  static float data[ELEMENTS];
  OrtValue* tensor = host_tensor(data);
  const OrtValue* source = tensor;
  OK(&client, client.api->CopyTensors(client.env, &source, &held.tensor, held.stream, 1));
  client.api->ReleaseValue(tensor);
  OK(&client, interop->DeinitGraphicsInteropForEpDevice(devices[0]));
  CHECK(mock.live("context") == 2);
  semaphore_set(held.value, 1);
  let_go(&held);
  for (int i = 0; i < 10000 && mock.live("context") != 1; ++i) {
    client_sleep_ms(1);
  }
  CHECK(mock.live("context") == 1 && mock.live("host memory") == 1);
#else
  OK(&client, init_graphics(ORT_GRAPHICS_API_D3D12, &queue, NULL, NULL));
  OK(&client, interop->DeinitGraphicsInteropForEpDevice(devices[0]));
#endif
  close_ep();
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  static const struct {
    const char* name;
    void (*run)(void);
  } tests[] = {
      {"no_devices", test_no_devices},
      {"identity", test_identity},
      {"lazy_context", test_lazy_context},
      {"probes", test_probes},
      {"release_while_waiting", test_release_while_waiting},
      {"unregister_while_waiting", test_unregister_while_waiting},
      {"copies_behind_wait", test_copies_behind_wait},
      {"free_follows_stream", test_free_follows_stream},
      {"allocation_calls", test_allocation_calls},
      {"free_behind_frame", test_free_behind_frame},
      {"release_behind_frame", test_release_behind_frame},
      {"release_between_frames", test_release_between_frames},
      {"surplus_behind_wait", test_surplus_behind_wait},
      {"two_devices", test_two_devices},
      {"graphics", test_graphics},
  };
  mock = mock_open();
  client_load(&client, argv[1]);
  client.interop = client.api->GetInteropApi();
  ep_path = argv[2];
  size_t fds = client_open_fds();
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
    tests[i].run();
    CHECK(client_open_fds() == fds);
    printf("ok %s\n", tests[i].name);
    fflush(stdout);
  }
  client.api->ReleaseEnv(client.env);
  printf("passed %zu\n", sizeof tests / sizeof tests[0]);
  return 0;
}
