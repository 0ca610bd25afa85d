/*
 * One pass through everything that the EP does, again and again, each time with the next call to
 * the system failing: the failure becomes a status, out-parameters are null, nothing is left over.
 *
 * importer_faults ORT_LIBRARY EP_LIBRARY      (the EP is linked with fault_wrap.c)
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

#include "direct.h"
#include "exporter.h"

#define SIZE 8192

bool ep_test_should_fail(const char* what);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool armed;
static long countdown;
static const char* failed; /* What failed in this pass, null if nothing did. */

bool ep_test_should_fail(const char* what) {
  pthread_mutex_lock(&mutex);
  bool fail = armed && countdown-- == 0;
  if (fail) {
    failed = what;
  }
  pthread_mutex_unlock(&mutex);
  return fail;
}

/* What the test itself does, and what ORT does around the slots, must not fail. */
static void arm(bool on) {
  pthread_mutex_lock(&mutex);
  armed = on;
  pthread_mutex_unlock(&mutex);
}

/* Whether a call worked. If it did not, it says so, and it is the one that was made to fail. `slot`
 * is where its result goes, null if it has none. */
static bool worked(OrtStatus* status, const void* slot, const char* what) {
  const void* out = NULL;
  if (slot != NULL) {
    memcpy(&out, slot, sizeof out);
  }
  arm(false);
  if (status == NULL) {
    if (slot != NULL && out == NULL) {
      fprintf(stderr, "%s: success without a result, %s failed\n", what,
              failed ? failed : "nothing");
      exit(1);
    }
    arm(true);
    return true;
  }
  if (failed == NULL || out != NULL || live_statuses() != 1) {
    fprintf(stderr, "%s: bad failure\n", what);
    exit(1);
  }
  release_status(status);
  CHECK(live_statuses() == 0);
  arm(true);
  return false;
}

typedef struct Pass {
  const Direct* direct;
  void* shared;
  bool waits; /* For value 1 of the semaphore. */
  OrtEpFactory* factory;
  OrtExternalResourceImporterImpl* importer;
  OrtSyncStreamImpl* stream;
  OrtExternalMemoryHandle* memory;
  OrtExternalSemaphoreHandle* semaphore;
  OrtValue* tensor;
  OrtAllocator* allocator;
  OrtDataTransferImpl* transfer;
  OrtSyncNotificationImpl* notification;
  OrtEp* ep;
} Pass;

static void use_stream(Pass* pass) {
  OrtSyncNotificationImpl* notification = NULL;
  if (worked(pass->stream->CreateNotification(pass->stream, &notification), &notification,
             "notification")) {
    pass->notification = notification;
    (void)worked(notification->Activate(notification), NULL, "activate");
    (void)worked(notification->WaitOnDevice(notification, pass->direct->stream), NULL, "wait");
    (void)worked(notification->WaitOnHost(notification), NULL, "wait on host");
  }
}

static void use_memory(Pass* pass, int memory_fd) {
  const OrtExternalMemoryDescriptor descriptor = {
      .version = 24,
      .handle_type = ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD,
      .native_handle = (void*)(intptr_t)memory_fd,
      .size_bytes = SIZE,
  };
  if (!worked(pass->importer->ImportMemory(pass->importer, &descriptor, &pass->memory),
              &pass->memory, "import memory")) {
    return;
  }
  const int64_t shape[] = {SIZE};
  const OrtExternalTensorDescriptor tensor = {.version = 24,
                                              .element_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
                                              .shape = shape,
                                              .rank = 1};
  if (!worked(pass->importer->CreateTensorFromMemory(pass->importer, pass->memory, &tensor,
                                                     &pass->tensor),
              &pass->tensor, "tensor")) {
    return;
  }
  /* Between the host and the device, so that the stream's copy is staged. */
  static unsigned char host[SIZE];
  arm(false);
  OrtMemoryInfo* cpu = NULL;
  OrtValue* source = NULL;
  const OrtApi* api = pass->direct->client.api;
  OK(&pass->direct->client, api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
  OK(&pass->direct->client,
     api->CreateTensorWithDataAsOrtValue(cpu, host, SIZE, shape, 1,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, &source));
  arm(true);
  const OrtValue* sources[] = {source};
  OrtValue* targets[] = {pass->tensor};
  OrtSyncStream* streams[] = {pass->direct->stream};
  (void)worked(pass->transfer->CopyTensors(pass->transfer, sources, targets, streams, 1), NULL,
               "copy");
  arm(false);
  api->ReleaseValue(source);
  api->ReleaseMemoryInfo(cpu);
  arm(true);
}

static void use_semaphore(Pass* pass, int semaphore_fd) {
  OrtExternalResourceImporterImpl* importer = pass->importer;
  const OrtExternalSemaphoreDescriptor descriptor = {
      .version = 24,
      .type = ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD,
      .native_handle = (void*)(intptr_t)semaphore_fd,
  };
  if (worked(importer->ImportSemaphore(importer, &descriptor, &pass->semaphore), &pass->semaphore,
             "import semaphore")) {
    OrtSyncStream* stream = pass->direct->stream;
    /* The stream is busy from here on, so that what follows is queued. */
    pass->waits =
        worked(importer->WaitSemaphore(importer, pass->semaphore, stream, 1), NULL, "wait");
    (void)worked(importer->SignalSemaphore(importer, pass->semaphore, stream, 2), NULL, "signal");
  }
}

static void* signal_later(void* argument) {
  client_sleep_ms(5);
  exporter_signal(((Pass*)argument)->shared, 1);
  return NULL;
}

/* Memory is freed while the stream waits. Where the EP cannot put that off it waits as well. */
static void free_behind_work(Pass* pass) {
  pthread_t thread;
  void* memory = pass->allocator->Alloc(pass->allocator, 100);
  arm(false);
  CHECK(pthread_create(&thread, NULL, signal_later, pass) == 0);
  arm(true);
  pass->allocator->Free(pass->allocator, memory);
  arm(false);
  CHECK(pthread_join(thread, NULL) == 0);
  arm(true);
  pass->waits = false;
}

static void use_factory(Pass* pass, int memory_fd, int semaphore_fd) {
  OrtEpFactory* factory = pass->factory;
  const OrtApi* api = pass->direct->client.api;
  const OrtMemoryInfo* info =
      api->EpDevice_MemoryInfo(pass->direct->client.device, OrtDeviceMemoryType_DEFAULT);
  if (worked(factory->CreateAllocator(factory, info, NULL, &pass->allocator), &pass->allocator,
             "allocator")) {
    void* memory = pass->allocator->Alloc(pass->allocator, 100);
    pass->allocator->Free(pass->allocator, memory);
  }
  const OrtMemoryDevice* memory_device = api->GetEpApi()->MemoryInfo_GetMemoryDevice(info);
  if (worked(factory->CreateSyncStreamForDevice(factory, memory_device, NULL, &pass->stream),
             &pass->stream, "stream")) {
    use_stream(pass);
  }
  const OrtKeyValuePairs* metadata = api->EpDevice_EpMetadata(pass->direct->client.device);
  if (worked(factory->CreateEp(factory, NULL, &metadata, 1, NULL, NULL, &pass->ep), &pass->ep,
             "ep")) {
    OrtNodeComputeInfo* infos[2] = {NULL, NULL};
    if (worked(pass->ep->Compile(pass->ep, NULL, NULL, 2, infos, NULL), NULL, "compile")) {
      pass->ep->ReleaseNodeComputeInfos(pass->ep, infos, 2);
    }
    CHECK(infos[0] == NULL && infos[1] == NULL);
  }
  if (worked(factory->CreateExternalResourceImporterForDevice(factory, pass->direct->device,
                                                              &pass->importer),
             &pass->importer, "importer") &&
      worked(factory->CreateDataTransfer(factory, &pass->transfer), &pass->transfer, "transfer")) {
    use_semaphore(pass, semaphore_fd);
    use_memory(pass, memory_fd);
  }
  if (pass->waits && pass->allocator != NULL) {
    free_behind_work(pass);
  }
}

static void release(Pass* pass) {
  const OrtEpApi* ep_api = pass->direct->client.api->GetEpApi();
  OrtSyncStreamImpl* common =
      (OrtSyncStreamImpl*)(uintptr_t)ep_api->SyncStream_GetImpl(pass->direct->stream);
  arm(false);
  if (pass->waits) {
    exporter_signal(pass->shared, 1);
  }
  OrtStatus* status = common->Flush(common);
  CHECK(status == NULL);
  arm(true);
  if (pass->notification != NULL) {
    pass->notification->Release(pass->notification);
  }
  if (pass->memory != NULL) {
    pass->memory->Release(pass->memory);
  }
  if (pass->semaphore != NULL) {
    pass->semaphore->Release(pass->semaphore);
  }
  if (pass->tensor != NULL) {
    pass->direct->client.api->ReleaseValue(pass->tensor);
  }
  if (pass->stream != NULL) {
    pass->stream->Release(pass->stream);
  }
  if (pass->importer != NULL) {
    pass->importer->Release(pass->importer);
  }
  if (pass->transfer != NULL) {
    pass->transfer->Release(pass->transfer);
  }
  if (pass->factory != NULL) {
    pass->factory->ReleaseAllocator(pass->factory, pass->allocator);
    pass->factory->ReleaseEp(pass->factory, pass->ep);
    CHECK(pass->direct->library.release(pass->factory) == NULL);
  }
}

/* One pass, in which the call number `number` fails; false if there is no such call. */
static bool run_pass(const Direct* direct, long number) {
  int memory_fd = exporter_memory(SIZE);
  int semaphore_fd = exporter_semaphore(0);
  CHECK(memory_fd >= 0 && semaphore_fd >= 0);
  Pass pass = {.direct = direct, .shared = exporter_map(semaphore_fd)};
  CHECK(pass.shared != NULL);
  const OrtApiBase* base = fake_base(&direct->client, "1.24.0", 24);
  size_t count = 0;
  failed = NULL;
  countdown = number;
  arm(true);
  if (worked(direct->library.create("faults", base, NULL, &pass.factory, 1, &count), &pass.factory,
             "factory")) {
    use_factory(&pass, memory_fd, semaphore_fd);
  }
  release(&pass);
  arm(false);
  exporter_settle();
  exporter_unmap(pass.shared);
  close(memory_fd);
  close(semaphore_fd);
  return failed != NULL;
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  static Direct direct;
  direct_open(&direct, argv[1], argv[2]);
  CHECK(!run_pass(&direct, -1)); /* Nothing fails, and what is made once is there. */
  size_t fds = client_open_fds();
  long number = 0;
  while (run_pass(&direct, number)) {
    CHECK(client_open_fds() == fds && live_statuses() == 0);
    ++number;
  }
  direct_close(&direct);
  exporter_check();
  printf("failed at %ld places\n", number);
  return 0;
}
