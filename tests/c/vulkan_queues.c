/*
 * Streams that share a VkQueue: what waits on one of them holds up no other, nor the caller.
 *
 * vulkan_queues ORT_LIBRARY EP_LIBRARY [TEST]
 *
 * On a mock with up to 4 queues. With the option queues_wait=0 it is an offence when a queue itself
 * has to wait. None that is shared does: the only one of queues=1, the second of queues=2.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "gpu_mock.h"

#define SIZE 65536
#define ELEMENTS (SIZE / 4)
#define ROUNDS 20
#define STREAMS 3
#define LAST (STREAMS - 1) /* It has no queue of its own where the device has 4 or less. */

/* A semaphore of the application's. */
typedef struct Timeline {
  int fd;
  uint64_t* value;
  OrtExternalSemaphoreHandle* handle;
} Timeline;

typedef struct Rig {
  Client client;
  OrtExternalResourceImporter* importer;
  OrtSyncStream* streams[STREAMS];
  int memory_fd;
  OrtExternalMemoryHandle* memory;
  OrtValue* tensor; /* Of the whole memory. */
  Timeline timelines[STREAMS];
  OrtValue* source;
  OrtValue* target;
} Rig;

static Mock mock;
static float source[ELEMENTS];
static float target[ELEMENTS];

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

static void rig_open(Rig* rig, const char* ort_path, const char* ep_path) {
  const Client* client = &rig->client;
  client_open(&rig->client, ort_path, ep_path);
  OK(client,
     client->interop->CreateExternalResourceImporterForDevice(client->device, &rig->importer));
  rig->memory_fd = (int)mock.export_memory(SIZE);
  rig->memory = client_import(client, rig->importer, rig->memory_fd, SIZE, 0);
  const int64_t shape[] = {ELEMENTS};
  rig->tensor = client_tensor(client, rig->importer, rig->memory,
                              ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, shape, 1, 0);
  for (size_t i = 0; i < STREAMS; ++i) {
    Timeline* timeline = &rig->timelines[i];
    rig->streams[i] = client_stream(client);
    timeline->fd = (int)mock.export_semaphore();
    timeline->value = mock.map(timeline->fd, sizeof *timeline->value);
    timeline->handle = client_import_semaphore(client, rig->importer, timeline->fd);
  }
  rig->source = host_tensor(client, source);
  rig->target = host_tensor(client, target);
  for (size_t i = 0; i < ELEMENTS; ++i) {
    source[i] = (float)i;
    target[i] = -1.0f;
  }
}

static void release_stream(Rig* rig, size_t index) {
  if (rig->streams[index] != NULL) {
    rig->client.api->ReleaseSyncStream(rig->streams[index]);
    rig->streams[index] = NULL;
  }
}

/* All that the EP has made; what work still uses is put off. */
static void release(Rig* rig) {
  const Client* client = &rig->client;
  client->api->ReleaseValue(rig->tensor);
  client->interop->ReleaseExternalMemoryHandle(rig->memory);
  for (size_t i = 0; i < STREAMS; ++i) {
    client->interop->ReleaseExternalSemaphoreHandle(rig->timelines[i].handle);
    release_stream(rig, i);
  }
  client->interop->ReleaseExternalResourceImporter(rig->importer);
}

/* Nothing is left of the EP. */
static void rig_close(Rig* rig) {
  for (size_t i = 0; i < STREAMS; ++i) {
    mock.unmap(rig->timelines[i].value, sizeof *rig->timelines[i].value);
    mock.close(rig->timelines[i].fd);
  }
  mock.close(rig->memory_fd);
  rig->client.api->ReleaseValue(rig->source);
  rig->client.api->ReleaseValue(rig->target);
  client_close(&rig->client);
  mock_settle(&mock, 0);
  mock_check(&mock);
}

static OrtSyncStreamImpl* impl_of(const Rig* rig, size_t stream) {
  return (OrtSyncStreamImpl*)rig->client.api->GetEpApi()->SyncStream_GetImpl(rig->streams[stream]);
}

static OrtStatus* flush(const Rig* rig, size_t stream) {
  OrtSyncStreamImpl* impl = impl_of(rig, stream);
  return impl->Flush(impl);
}

static OrtStatus* wait_for(const Rig* rig, size_t stream, size_t timeline, uint64_t value) {
  return rig->client.interop->WaitSemaphore(rig->importer, rig->timelines[timeline].handle,
                                            rig->streams[stream], value);
}

static OrtStatus* signal_with(const Rig* rig, size_t stream, size_t timeline, uint64_t value) {
  return rig->client.interop->SignalSemaphore(rig->importer, rig->timelines[timeline].handle,
                                              rig->streams[stream], value);
}

static OrtStatus* copy_in(Rig* rig, OrtSyncStream* stream) {
  const OrtValue* from = rig->source;
  return rig->client.api->CopyTensors(rig->client.env, &from, &rig->tensor, stream, 1);
}

static OrtStatus* copy_out(Rig* rig, OrtSyncStream* stream) {
  const OrtValue* from = rig->tensor;
  return rig->client.api->CopyTensors(rig->client.env, &from, &rig->target, stream, 1);
}

static bool reaches(const Rig* rig, size_t timeline, uint64_t value) {
  for (int i = 0; i < 10000 && semaphore_value(rig->timelines[timeline].value) < value; ++i) {
    client_sleep_ms(1);
  }
  return semaphore_value(rig->timelines[timeline].value) >= value;
}

/* A stream waits for a signal of another one, which comes later: in one queue they would wait for
 * ever. The calls return at once, and the data arrives in order. */
static void test_signal_from_another_stream(Rig* rig) {
  const Client* client = &rig->client;
  double start = client_now_ms();
  OK(client, wait_for(rig, 0, 0, 1));
  OK(client, copy_out(rig, rig->streams[0]));
  OK(client, signal_with(rig, 0, 1, 7));
  CHECK(client_now_ms() - start < 5000.0);
  client_sleep_ms(20);
  CHECK(target[1] == -1.0f && semaphore_value(rig->timelines[1].value) == 0);
  OK(client, copy_in(rig, rig->streams[1]));
  OK(client, signal_with(rig, 1, 0, 1));
  OK(client, flush(rig, 1));
  OK(client, flush(rig, 0));
  CHECK(memcmp(source, target, SIZE) == 0);
  CHECK(reaches(rig, 1, 7));
  REFUSED(client, signal_with(rig, 0, 1, 7), ORT_INVALID_ARGUMENT,
          "value is 7, but the semaphore is already at 7");
}

/* A chain of waits through all streams, enqueued from its end. */
static void test_chain(Rig* rig) {
  const Client* client = &rig->client;
  for (uint64_t round = 1; round <= ROUNDS; ++round) {
    for (size_t i = STREAMS; i-- > 1;) {
      OK(client, wait_for(rig, i, i - 1, round));
      OK(client, signal_with(rig, i, i, round));
    }
    OK(client, signal_with(rig, 0, 0, round));
    CHECK(reaches(rig, STREAMS - 1, round));
  }
}

/* Rounds that are all enqueued before the first may start keep their order. */
static void test_order(Rig* rig) {
  static float targets[ROUNDS][ELEMENTS];
  const Client* client = &rig->client;
  for (uint64_t round = 1; round <= ROUNDS; ++round) {
    OrtValue* own = host_tensor(client, targets[round - 1]);
    const OrtValue* tensor = rig->tensor;
    OK(client, wait_for(rig, 0, 0, round));
    source[0] = (float)round; /* Staged by the call. */
    OK(client, copy_in(rig, rig->streams[0]));
    OK(client, client->api->CopyTensors(client->env, &tensor, &own, rig->streams[0], 1));
    OK(client, signal_with(rig, 0, 1, round));
    client->api->ReleaseValue(own);
  }
  for (uint64_t round = 1; round <= ROUNDS; ++round) {
    CHECK(semaphore_value(rig->timelines[1].value) == round - 1);
    semaphore_set(rig->timelines[0].value, round);
    CHECK(reaches(rig, 1, round));
  }
  OK(client, flush(rig, 0));
  for (int i = 0; i < ROUNDS; ++i) {
    CHECK(targets[i][0] == (float)(i + 1) && targets[i][ELEMENTS - 1] == source[ELEMENTS - 1]);
  }
}

/* While a stream is held, copies without a stream, others' flushes and new streams go on. */
static void test_others_go_on(Rig* rig) {
  const Client* client = &rig->client;
  OK(client, wait_for(rig, 0, 0, 1));
  OK(client, copy_in(rig, NULL));
  OK(client, copy_out(rig, NULL));
  CHECK(memcmp(source, target, SIZE) == 0);
  OK(client, copy_out(rig, rig->streams[1]));
  OK(client, flush(rig, 1));
  OrtSyncStream* more = client_stream(client);
  OK(client, copy_in(rig, more));
  client->api->ReleaseSyncStream(more);
  semaphore_set(rig->timelines[0].value, 1);
  OK(client, flush(rig, 0));
}

/* An event of a held stream happens no earlier than the stream gets there, on device and host. */
static void test_events(Rig* rig) {
  const Client* client = &rig->client;
  OrtSyncStreamImpl* impl = impl_of(rig, 0);
  OrtSyncNotificationImpl* held = NULL;
  OrtSyncNotificationImpl* free_one = NULL;
  OK(client, impl->CreateNotification(impl, &held));
  OK(client, impl_of(rig, 1)->CreateNotification(impl_of(rig, 1), &free_one));
  OK(client, copy_in(rig, rig->streams[1]));
  OK(client, free_one->Activate(free_one));
  OK(client, free_one->WaitOnDevice(free_one, rig->streams[0]));
  OK(client, wait_for(rig, 0, 0, 1));
  OK(client, held->Activate(held));
  OK(client, held->WaitOnDevice(held, rig->streams[1]));
  OK(client, held->WaitOnDevice(held, rig->streams[2]));
  OK(client, signal_with(rig, 2, 2, 1));
  held->Release(held);
  free_one->Release(free_one);
  OK(client, impl->CreateNotification(impl, &held));
  OK(client, held->Activate(held));
  release_stream(rig, 0);
  client_sleep_ms(20);
  CHECK(semaphore_value(rig->timelines[2].value) == 0);
  semaphore_set(rig->timelines[0].value, 1);
  OK(client, held->WaitOnHost(held));
  CHECK(reaches(rig, 2, 1));
  held->Release(held);
}

/* Everything is released while work that uses it is held; it lives until the work is done. */
static void test_released_behind_work(Rig* rig) {
  const Client* client = &rig->client;
  for (size_t i = 0; i < STREAMS; ++i) {
    OK(client, wait_for(rig, i, 0, 1));
  }
  OK(client, copy_in(rig, rig->streams[0]));
  OK(client, copy_out(rig, rig->streams[0]));
  OK(client, signal_with(rig, 0, 1, 1));
  OK(client, signal_with(rig, 1, 2, 1));
  OrtAllocator* allocator = NULL;
  OK(client,
     client->api->CreateSharedAllocator(client->env, client->device, OrtDeviceMemoryType_DEFAULT,
                                        OrtDeviceAllocator, NULL, &allocator));
  void* memory = allocator->Alloc(allocator, SIZE);
  CHECK(memory != NULL);
  allocator->Free(allocator, memory);
  OK(client,
     client->api->ReleaseSharedAllocator(client->env, client->device, OrtDeviceMemoryType_DEFAULT));
  release(rig);
  client_sleep_ms(20);
  CHECK(mock.live("external memory") == 1);
  CHECK(mock.live("external semaphore") == STREAMS);
  semaphore_set(rig->timelines[0].value, 1);
  CHECK(reaches(rig, 1, 1) && reaches(rig, 2, 1));
}

/* What cannot be submitted once its time comes: the flush says why, what follows is not done,
 * nothing is written, nothing signalled. After the flush the stream works again. */
static void test_refused_later(Rig* rig) {
  const Client* client = &rig->client;
  OK(client, wait_for(rig, LAST, 0, 1));
  OK(client, copy_out(rig, rig->streams[LAST]));
  OK(client, signal_with(rig, LAST, 1, 1));
  mock.set_option("submit_refusals", 3);
  semaphore_set(rig->timelines[0].value, 1);
  client_sleep_ms(20);
  const char* text = "vkQueueSubmit failed: VK_ERROR_OUT_OF_DEVICE_MEMORY (-2)";
  OrtSyncStreamImpl* impl = impl_of(rig, LAST);
  OrtSyncNotificationImpl* event = NULL;
  OK(client, impl->CreateNotification(impl, &event));
  OK(client, event->Activate(event));
  REFUSED(client, event->WaitOnHost(event), ORT_EP_FAIL, text);
  event->Release(event);
  REFUSED(client, signal_with(rig, LAST, 1, 2), ORT_EP_FAIL, text);
  REFUSED(client, flush(rig, LAST), ORT_EP_FAIL, text);
  CHECK(target[1] == -1.0f && semaphore_value(rig->timelines[1].value) == 0);
  OK(client, flush(rig, LAST));
  OK(client, copy_in(rig, rig->streams[LAST]));
  OK(client, copy_out(rig, rig->streams[LAST]));
  OK(client, signal_with(rig, LAST, 1, 1));
  OK(client, flush(rig, LAST));
  CHECK(memcmp(source, target, SIZE) == 0 && reaches(rig, 1, 1));
}

/* Work that nobody waits for any more is tried again before it is given up. */
static void test_tried_again(Rig* rig) {
  const Client* client = &rig->client;
  OK(client, copy_in(rig, rig->streams[LAST]));
  OK(client, wait_for(rig, LAST, 0, 1));
  OK(client, copy_out(rig, rig->streams[LAST]));
  mock.set_option("submit_refusals", 2);
  semaphore_set(rig->timelines[0].value, 1);
  OK(client, flush(rig, LAST));
  CHECK(memcmp(source, target, SIZE) == 0);
}

/* The device is lost while work is held: calls say so, and everything can be released. */
static void lose(Rig* rig, long how) {
  const Client* client = &rig->client;
  OK(client, copy_in(rig, rig->streams[1]));
  OK(client, flush(rig, 1));
  OK(client, wait_for(rig, 0, 0, 1));
  OK(client, copy_out(rig, rig->streams[0]));
  OK(client, signal_with(rig, 0, 1, 1));
  mock.set_option("lost", how);
  REFUSED(client, flush(rig, 0), ORT_EP_FAIL, "VK_ERROR_DEVICE_LOST (-4)");
  REFUSED(client, copy_in(rig, NULL), ORT_EP_FAIL, "VK_ERROR_DEVICE_LOST (-4)");
  CHECK(target[1] == -1.0f && semaphore_value(rig->timelines[1].value) == 0);
  release(rig);
}

static void test_lost(Rig* rig) {
  lose(rig, 1);
}

static void test_lost_with_still_counters(Rig* rig) {
  lose(rig, 2);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(Rig*);
    bool releases;
  } tests[] = {
      {"signal_from_another_stream", test_signal_from_another_stream, false},
      {"chain", test_chain, false},
      {"order", test_order, false},
      {"others_go_on", test_others_go_on, false},
      {"events", test_events, false},
      {"released_behind_work", test_released_behind_work, true},
      {"refused_later", test_refused_later, false},
      {"tried_again", test_tried_again, false},
      {"lost", test_lost, true},
      {"lost_with_still_counters", test_lost_with_still_counters, true},
  };
  CHECK(argc == 3 || argc == 4);
  (void)alarm(120); /* Streams that hold up each other never end. */
  mock = mock_open();
  size_t passed = 0;
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
    if (argc == 3 || strcmp(argv[3], tests[i].name) == 0) {
      Rig rig = {0};
      size_t fds = client_open_fds();
      rig_open(&rig, argv[1], argv[2]);
      tests[i].run(&rig);
      if (!tests[i].releases) {
        release(&rig);
      }
      rig_close(&rig);
      CHECK(passed == 0 || client_open_fds() == fds); /* The first one loads the libraries. */
      mock.set_option("lost", 0);
      printf("ok %s\n", tests[i].name);
      fflush(stdout);
      ++passed;
    }
  }
  printf("passed %zu\n", passed);
  return 0;
}
