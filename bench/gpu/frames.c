/*
 * An EP of a real GPU between a Vulkan producer and a Vulkan consumer, inside a real ONNX Runtime.
 *
 * frames ORT_LIBRARY EP_LIBRARY EP_NAME FRAMES HALF_BYTES ANY_GPU COUNT LEND
 *
 * Prints a table; exits with 1 where a check fails. With ANY_GPU=1 the Vulkan device need not have
 * the EP device's UUID (for an EP whose driver is only forwarded). With COUNT=1 the EP's copies are
 * counted from ONNX Runtime's verbose log, which makes the host slower. With LEND=1 the EP, which is
 * the vulkan one, works on the application's own VkDevice and on a queue of that; exits with 3 after
 * what can be shown without semaphores where the device exports none, or has no second queue.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "client.h"
#include "loan.h"
#include "vulkan_app.h"

#define DELAY_MS 200
#define AHEAD 8
#define LATE_FRAMES 2 /* Of the ordering proof, before the others. */
#define FREE_FRAMES 2 /* Of the proof about freed memory. */
#define TURN_FRAMES 3 /* On a lent device, without semaphores. */
#define PAIR_FRAMES 2 /* On a lent device, of the proof about its queue. */
#define SLOW_FRAMES (LATE_FRAMES + FREE_FRAMES + TURN_FRAMES + PAIR_FRAMES)
#define NO_MORE_TO_SHOW 3 /* Exit status. */

/* What the EP logs about copies. */
static struct {
  const char* ep_name;
  unsigned on_device;
  unsigned through_host;
} copies;

static void ORT_API_CALL count_copy(void* argument, OrtLoggingLevel severity, const char* category,
                                    const char* log_id, const char* location, const char* message) {
  (void)argument;
  (void)severity;
  (void)category;
  (void)log_id;
  (void)location;
  if (strstr(message, copies.ep_name) != NULL && strstr(message, " bytes from ") != NULL) {
    if (strstr(message, "(host)") != NULL) {
      ++copies.through_host;
    } else {
      ++copies.on_device;
    }
  }
}

typedef struct Rig {
  Client client;
  VulkanApp* app;
  OrtExternalResourceImporter* importer;
  OrtExternalMemoryHandle* memory;
  OrtExternalSemaphoreHandle* semaphore;
  OrtSyncStream* stream;
  OrtSession* session;
  OrtRunOptions* options;
  OrtValue* x;
  OrtValue* y;
  bool lends;
  uint32_t runs;
} Rig;

static void row(const char* what, const char* format, double value) {
  printf("| %-58s | ", what);
  printf(format, value);
  printf(" |\n");
}

static void client_with_log(Client* client, const char* ort_path, bool count) {
  client_load(client, ort_path);
  client->api->ReleaseEnv(client->env);
  OK(client, client->api->CreateEnvWithCustomLogger(
                 count_copy, NULL, count ? ORT_LOGGING_LEVEL_VERBOSE : ORT_LOGGING_LEVEL_ERROR,
                 "frames", &client->env));
  client->interop = client->api->GetInteropApi();
  CHECK(client->interop != NULL);
}

static void find_device(Client* client, const char* ep_path) {
  const OrtApi* api = client->api;
  OK(client, api->RegisterExecutionProviderLibrary(client->env, "gpu", ep_path));
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  OK(client, api->GetEpDevices(client->env, &devices, &count));
  for (size_t i = 0; i < count && client->device == NULL; ++i) {
    if (strcmp(api->EpDevice_EpName(devices[i]), copies.ep_name) == 0) {
      client->device = devices[i];
    }
  }
  if (client->device == NULL) {
    fprintf(stderr, "%s offers no device: its driver is missing, or has none\n", copies.ep_name);
    exit(1);
  }
}

static const char* metadata(const Client* client, const char* key) {
  const char* value =
      client->api->GetKeyValue(client->api->EpDevice_EpMetadata(client->device), key);
  return value == NULL ? "" : value;
}

static void rig_open(Rig* rig, size_t half, uint32_t frames, bool any_gpu) {
  Client* client = &rig->client;
  printf("  EP device: UUID %s, memory %s, semaphores %s\n", metadata(client, "UUID"),
         metadata(client, "interop_memory_handle_types"),
         metadata(client, "interop_semaphore_types"));
  rig->app = vulkan_open(any_gpu ? NULL : metadata(client, "UUID"), half, frames);
  if (rig->lends) {
    loan_begin(client, rig->app);
  }
  OK(client,
     client->interop->CreateExternalResourceImporterForDevice(client->device, &rig->importer));
  size_t size = 0;
  int memory_fd = vulkan_memory_fd(rig->app, &size);
  rig->memory = client_import(client, rig->importer, memory_fd, size, 0);
  CHECK(close(memory_fd) == 0); /* The import has its own descriptor. */
  const int64_t shape[] = {(int64_t)(half / 4)};
  rig->x = client_tensor(client, rig->importer, rig->memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
                         shape, 1, 0);
  rig->y = client_tensor(client, rig->importer, rig->memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
                         shape, 1, half);
  OK(client, client->api->CreateSyncStreamForEpDevice(client->device, NULL, &rig->stream));
  static const char* const identity[] = {"Identity"};
  rig->session = client_session(client, identity, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, shape, 1);
  rig->options = client_run_options(client, rig->stream, false);
}

static void rig_import_semaphore(Rig* rig) {
  int semaphore_fd = vulkan_semaphore_fd(rig->app);
  rig->semaphore = client_import_semaphore(&rig->client, rig->importer, semaphore_fd);
  CHECK(close(semaphore_fd) == 0);
}

static void rig_close(Rig* rig) {
  const Client* client = &rig->client;
  client->api->ReleaseRunOptions(rig->options);
  client->api->ReleaseSession(rig->session);
  client->api->ReleaseValue(rig->x);
  client->api->ReleaseValue(rig->y);
  client->interop->ReleaseExternalMemoryHandle(rig->memory);
  if (rig->semaphore != NULL) {
    client->interop->ReleaseExternalSemaphoreHandle(rig->semaphore);
  }
  client->api->ReleaseSyncStream(rig->stream);
  client->interop->ReleaseExternalResourceImporter(rig->importer);
  if (rig->lends) {
    loan_end(client);
  }
  vulkan_close(rig->app);
  OK(client, client->api->UnregisterExecutionProviderLibrary(client->env, "gpu"));
  client->api->ReleaseEnv(client->env);
}

static void wait_on(const Rig* rig, OrtSyncStream* stream, uint64_t value) {
  OK(&rig->client,
     rig->client.interop->WaitSemaphore(rig->importer, rig->semaphore, stream, value));
}

static void signal_on(const Rig* rig, OrtSyncStream* stream, uint64_t value) {
  OK(&rig->client,
     rig->client.interop->SignalSemaphore(rig->importer, rig->semaphore, stream, value));
}

static void run_model(Rig* rig, const OrtRunOptions* options) {
  client_run(&rig->client, rig->session, options, rig->x, &rig->y);
  ++rig->runs;
}

/* Wait, Run, signal between two values of the semaphore; the host's microseconds. */
static double infer_between(Rig* rig, uint64_t wait, uint64_t signal) {
  double start = client_now_ms();
  wait_on(rig, rig->stream, wait);
  run_model(rig, rig->options);
  signal_on(rig, rig->stream, signal);
  return (client_now_ms() - start) * 1e3;
}

/* The same for a frame. */
static double infer(Rig* rig, uint32_t frame) {
  return infer_between(rig, 2 * (uint64_t)frame + 1, 2 * (uint64_t)frame + 2);
}

static int compare(const void* a, const void* b) {
  double x = *(const double*)a;
  double y = *(const double*)b;
  return (x > y) - (x < y);
}

/* On a lent device: the application and the EP take turns with memory of that device, each waiting
 * on the host for the other. */
static void take_turns(Rig* rig, uint32_t first) {
  loan_check_in_use(&rig->client);
  OrtRunOptions* options = client_run_options(&rig->client, rig->stream, true);
  uint32_t right = 0;
  for (uint32_t frame = first; frame < first + TURN_FRAMES; ++frame) {
    uint64_t before = 2 * (uint64_t)frame;
    vulkan_produce(rig->app, frame, before, before + 1);
    CHECK(vulkan_wait(rig->app, before + 1, 10000));
    run_model(rig, options);
    vulkan_signal(rig->app, before + 2);
    vulkan_consume(rig->app, frame, before + 2);
    vulkan_rest(rig->app);
    right += vulkan_saw(rig->app, frame);
  }
  rig->client.api->ReleaseRunOptions(options);
  row("lent device: frames in turns without semaphores", "%10.0f", (double)TURN_FRAMES);
  row("lent device: those with the right data", "%10.0f", (double)right);
  CHECK(right == TURN_FRAMES);
}

/* On a lent queue, which the EP's streams share: one waits for a value that another one signals, and
 * that in turn waits for the producer. A queue that held the first wait would never come to the
 * signal. */
static void share_the_queue(Rig* rig, uint32_t frame) {
  const Client* client = &rig->client;
  uint64_t before = 2 * (uint64_t)frame;
  OrtSyncStream* other = NULL;
  OK(client, client->api->CreateSyncStreamForEpDevice(client->device, NULL, &other));
  double host = infer_between(rig, before + 2, before + 3);
  row("lent queue: wait + Run + signal on the 1st stream [us]", "%10.1f", host);
  vulkan_produce(rig->app, frame, before, before + 1);
  bool early = vulkan_wait(rig->app, before + 2, DELAY_MS);
  uint64_t value = vulkan_value(rig->app);
  row("lent queue: semaphore while the 1st stream waits", "%10.0f", (double)value);
  CHECK(!early && value == before + 1);
  double start = client_now_ms();
  wait_on(rig, other, before + 1);
  signal_on(rig, other, before + 2);
  row("lent queue: wait + signal on the 2nd stream [us]", "%10.1f",
      (client_now_ms() - start) * 1e3);
  bool through = vulkan_wait(rig->app, before + 3, 10000);
  if (!through) {
    fprintf(stderr, "the semaphore stands at %ju, not at %ju: the lent queue is stuck\n",
            (uintmax_t)vulkan_value(rig->app), (uintmax_t)before + 3);
  }
  CHECK(through);
  row("lent queue: from that wait to the result [ms]", "%10.3f", client_now_ms() - start);
  vulkan_consume(rig->app, frame, before + 3);
  vulkan_produce(rig->app, frame + 1, before + 3, before + 4); /* Whose data nobody takes. */
  vulkan_rest(rig->app);
  CHECK(vulkan_saw(rig->app, frame));
  client->api->ReleaseSyncStream(other);
}

/* The producer comes late: Run has returned, the stream is pending, and the right data comes after the
 * signal. */
static void late_producer(Rig* rig, uint32_t frame) {
  uint64_t produced = 2 * (uint64_t)frame + 1;
  double host = infer(rig, frame);
  bool early = vulkan_wait(rig->app, produced + 1, DELAY_MS);
  uint64_t value = vulkan_value(rig->app);
  row(frame == 0 ? "late producer: host time of wait + Run + signal, 1st run [us]"
                 : "late producer: host time of wait + Run + signal [us]",
      "%10.1f", host);
  row("late producer: semaphore after a delay of 200 ms", "%10.0f", (double)value);
  CHECK(!early && value == produced - 1);
  CHECK(host < DELAY_MS * 1e3 || frame == 0);
  double start = client_now_ms();
  vulkan_produce(rig->app, frame, produced - 1, produced);
  CHECK(vulkan_wait(rig->app, produced + 1, 10000));
  row("late producer: from its submission to the result [ms]", "%10.3f", client_now_ms() - start);
  vulkan_consume(rig->app, frame, produced + 1);
  vulkan_rest(rig->app);
  CHECK(vulkan_saw(rig->app, frame));
}

/* Memory is freed, and imports are released, behind one frame, and their turn comes while the next frame
 * waits: a thread that must still call the driver to get that frame going is not held up. */
static void free_behind_work(Rig* rig, uint32_t frame) {
  const Client* client = &rig->client;
  OrtAllocator* allocator = NULL;
  OK(client,
     client->api->CreateSharedAllocator(client->env, client->device, OrtDeviceMemoryType_DEFAULT,
                                        OrtDeviceAllocator, NULL, &allocator));
  void* memory = allocator->Alloc(allocator, 1 << 20);
  CHECK(memory != NULL);
  size_t size = 0;
  int memory_fd = vulkan_memory_fd(rig->app, &size);
  int semaphore_fd = vulkan_semaphore_fd(rig->app);
  OrtExternalMemoryHandle* import = client_import(client, rig->importer, memory_fd, size, 0);
  OrtExternalSemaphoreHandle* semaphore =
      client_import_semaphore(client, rig->importer, semaphore_fd);
  CHECK(close(memory_fd) == 0 && close(semaphore_fd) == 0);
  (void)infer(rig, frame);
  double start = client_now_ms();
  allocator->Free(allocator, memory);
  row("free behind a frame: host time of Free [us]", "%10.1f", (client_now_ms() - start) * 1e3);
  start = client_now_ms();
  client->interop->ReleaseExternalMemoryHandle(import);
  client->interop->ReleaseExternalSemaphoreHandle(semaphore);
  row("imports released behind a frame: host time [us]", "%10.1f", (client_now_ms() - start) * 1e3);
  (void)infer(rig, frame + 1);
  vulkan_produce(rig->app, frame, 2 * (uint64_t)frame, 2 * (uint64_t)frame + 1);
  CHECK(vulkan_wait(rig->app, 2 * (uint64_t)frame + 2, 10000));
  client_sleep_ms(100);
  start = client_now_ms();
  OrtSyncStream* stream = NULL;
  OK(client, client->api->CreateSyncStreamForEpDevice(client->device, NULL, &stream));
  client->api->ReleaseSyncStream(stream);
  memory = allocator->Alloc(allocator, 1 << 20);
  CHECK(memory != NULL);
  row("driver calls while the next frame waits [ms]", "%10.3f", client_now_ms() - start);
  vulkan_produce(rig->app, frame + 1, 2 * (uint64_t)frame + 2, 2 * (uint64_t)frame + 3);
  CHECK(vulkan_wait(rig->app, 2 * (uint64_t)frame + 4, 10000));
  allocator->Free(allocator, memory);
  OK(client,
     client->api->ReleaseSharedAllocator(client->env, client->device, OrtDeviceMemoryType_DEFAULT));
  for (uint32_t i = frame; i < frame + 2; ++i) {
    vulkan_consume(rig->app, i, 2 * (uint64_t)i + 2);
  }
  vulkan_rest(rig->app);
  CHECK(vulkan_saw(rig->app, frame + 1));
}

static void all_frames(Rig* rig, uint32_t first, uint32_t end) {
  uint32_t frames = end - first;
  double* host = calloc(frames, sizeof *host);
  CHECK(host != NULL);
  double start = client_now_ms();
  for (uint32_t i = first; i < end; ++i) {
    if (i >= first + AHEAD) {
      CHECK(vulkan_wait(rig->app, 2 * (uint64_t)(i - AHEAD) + 2, 10000));
    }
    vulkan_produce(rig->app, i, 2 * (uint64_t)i, 2 * (uint64_t)i + 1);
    host[i - first] = infer(rig, i);
    vulkan_consume(rig->app, i, 2 * (uint64_t)i + 2);
  }
  vulkan_rest(rig->app);
  double wall = client_now_ms() - start;
  uint32_t right = 0;
  for (uint32_t i = first; i < end; ++i) {
    right += vulkan_saw(rig->app, i);
  }
  qsort(host, frames, sizeof *host, compare);
  row("frames", "%10.0f", (double)frames);
  row("frames with the right data at both ends", "%10.0f", (double)right);
  row("frame, wall time [us]", "%10.1f", wall * 1e3 / frames);
  row("host time of wait + Run + signal: median [us]", "%10.1f", host[frames / 2]);
  row("host time of wait + Run + signal: 99th percentile [us]", "%10.1f",
      host[(size_t)(frames * 0.99)]);
  row("host time of wait + Run + signal: largest [us]", "%10.1f", host[frames - 1]);
  free(host);
  CHECK(right == frames);
}

static void finish(Rig* rig, size_t fds) {
  rig_close(rig);
  row("descriptors left over", "%10.0f", (double)client_open_fds() - (double)fds);
}

int main(int argc, char** argv) {
  CHECK(argc == 9);
  copies.ep_name = argv[3];
  uint32_t frames = (uint32_t)atoi(argv[4]);
  size_t half = (size_t)strtoull(argv[5], NULL, 10);
  bool any_gpu = strcmp(argv[6], "1") == 0;
  bool count = strcmp(argv[7], "1") == 0;
  static Rig rig;
  rig.lends = strcmp(argv[8], "1") == 0;
  client_with_log(&rig.client, argv[1], count);
  find_device(&rig.client, argv[2]);
  size_t fds = client_open_fds();
  rig_open(&rig, half, frames + SLOW_FRAMES, any_gpu);
  printf("  Vulkan: %s\n", vulkan_name(rig.app));
  printf("| %-58s | %10s |\n| %.58s | %.10s |\n", "what", "value",
         "----------------------------------------------------------------",
         "----------------------------------------------------------------");
  row("same GPU by UUID (1 is yes)", "%10.0f",
      strcmp(vulkan_uuid(rig.app), metadata(&rig.client, "UUID")) == 0);
  row("bytes of a frame, each way", "%10.0f", (double)half);
  uint32_t next = 0;
  if (rig.lends) {
    take_turns(&rig, next);
    next += TURN_FRAMES;
    const char* missing = !vulkan_exports_semaphores(rig.app) ? "exports no timeline semaphores"
                          : !vulkan_has_two_queues(rig.app)   ? "has no queue besides the lent one"
                                                              : NULL;
    if (missing != NULL) {
      finish(&rig, fds);
      fprintf(stderr, "the application's device %s: no more can be shown\n", missing);
      return NO_MORE_TO_SHOW;
    }
  }
  rig_import_semaphore(&rig);
  if (rig.lends) {
    share_the_queue(&rig, next);
    next += PAIR_FRAMES;
  }
  for (uint32_t i = 0; i < LATE_FRAMES; ++i) {
    late_producer(&rig, next++);
  }
  free_behind_work(&rig, next);
  next += FREE_FRAMES;
  all_frames(&rig, next, next + frames);
  if (count) {
    row("the EP's copies on the device (one of Identity each Run)", "%10.0f",
        (double)copies.on_device);
    row("the EP's copies from or to the host", "%10.0f", (double)copies.through_host);
    CHECK(copies.through_host == 0 && copies.on_device == rig.runs);
  }
  finish(&rig, fds);
  return 0;
}
