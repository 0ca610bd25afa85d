/*
 * Sessions on imported memory, in a real ONNX Runtime.
 *
 * host_run ORT_LIBRARY EP_LIBRARY          runs every test
 * host_run ORT_LIBRARY EP_LIBRARY --leave  exits with everything open, and a stream that waits
 * host_run --signal FD VALUE DELAY_MS      is the other process of one of the tests
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "exporter.h"

#define SIZE 8192
#define HALF 4096

static const int64_t SHAPE[] = {4, 4};
static const char* const IDENTITY[] = {"Identity"};

extern char** environ;

/* What most tests want: memory with a tensor in each half, a semaphore, a session and a stream. */
typedef struct Rig {
  Client client;
  const char* program; /* This one, to run it again. */
  size_t fds;          /* Open before anything of the rig. */
  OrtExternalResourceImporter* importer;
  int memory_fd;
  float* outside; /* A mapping of its own: what another process sees. */
  OrtExternalMemoryHandle* memory;
  OrtValue* x;
  OrtValue* y;
  int semaphore_fd;
  void* shared;
  OrtExternalSemaphoreHandle* semaphore;
  OrtSyncStream* stream;
  OrtSession* session;
} Rig;

static void rig_open(Rig* rig, const char* ort_path, const char* ep_path) {
  client_open(&rig->client, ort_path, ep_path);
  const Client* client = &rig->client;
  rig->fds = client_open_fds();
  OK(client,
     client->interop->CreateExternalResourceImporterForDevice(client->device, &rig->importer));
  CHECK(rig->importer != NULL);
  rig->memory_fd = exporter_memory(SIZE);
  CHECK(rig->memory_fd >= 0);
  rig->outside = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, rig->memory_fd, 0);
  CHECK(rig->outside != MAP_FAILED);
  rig->memory = client_import(client, rig->importer, rig->memory_fd, SIZE, 0);
  rig->x = client_tensor(client, rig->importer, rig->memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                         SHAPE, 2, 0);
  rig->y = client_tensor(client, rig->importer, rig->memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                         SHAPE, 2, HALF);
  rig->semaphore_fd = exporter_semaphore(0);
  CHECK(rig->semaphore_fd >= 0);
  rig->shared = exporter_map(rig->semaphore_fd);
  CHECK(rig->shared != NULL);
  rig->semaphore = client_import_semaphore(client, rig->importer, rig->semaphore_fd);
  OK(client, client->api->CreateSyncStreamForEpDevice(client->device, NULL, &rig->stream));
  rig->session = client_session(client, IDENTITY, 1, 1, SHAPE, 2);
}

static void rig_close(Rig* rig) {
  const Client* client = &rig->client;
  client->api->ReleaseSession(rig->session);
  client->api->ReleaseValue(rig->x);
  client->api->ReleaseValue(rig->y);
  client->interop->ReleaseExternalMemoryHandle(rig->memory);
  client->interop->ReleaseExternalSemaphoreHandle(rig->semaphore);
  client->api->ReleaseSyncStream(rig->stream);
  client->interop->ReleaseExternalResourceImporter(rig->importer);
  exporter_unmap(rig->shared);
  munmap(rig->outside, SIZE);
  close(rig->memory_fd);
  close(rig->semaphore_fd);
  exporter_settle();
  CHECK(client_open_fds() == rig->fds);
  client_close(&rig->client);
  exporter_check();
}

static void fill(Rig* rig, float first) {
  for (int i = 0; i < 16; ++i) {
    rig->outside[i] = first + (float)i;
    rig->outside[HALF / 4 + i] = -1.0f;
  }
}

static bool passed_through(const Rig* rig) {
  return memcmp(rig->outside, rig->outside + HALF / 4, 64) == 0;
}

/* The bytes of the tensors are the bytes of the memfd, and a write from outside is seen. */
static void test_zero_copy(Rig* rig) {
  const Client* client = &rig->client;
  void* x = NULL;
  void* y = NULL;
  OK(client, client->api->GetTensorMutableData(rig->x, &x));
  OK(client, client->api->GetTensorMutableData(rig->y, &y));
  CHECK((char*)y - (char*)x == HALF && x != (void*)rig->outside);
  OrtRunOptions* options = client_run_options(client, rig->stream, true);
  for (int round = 0; round < 3; ++round) {
    fill(rig, (float)(100 * round));
    OrtValue* before = rig->y;
    client_run(client, rig->session, options, rig->x, &rig->y);
    CHECK(rig->y == before && passed_through(rig));
  }
  client->api->ReleaseRunOptions(options);
}

/* Without a stream of the application's the session uses its own. */
static void test_plain_run(Rig* rig) {
  fill(rig, 5.0f);
  client_run(&rig->client, rig->session, NULL, rig->x, &rig->y);
  CHECK(passed_through(rig));
}

static void test_input_is_output(Rig* rig) {
  fill(rig, 7.0f);
  OrtValue* x = rig->x;
  client_run(&rig->client, rig->session, NULL, rig->x, &x);
  CHECK(x == rig->x && rig->outside[0] == 7.0f && rig->outside[15] == 22.0f);
}

typedef struct LateProducer {
  void* shared;
  atomic_bool returned; /**< Run has given the program back its thread. */
} LateProducer;

/* Signals after Run has returned and some time has gone; if Run blocks, after ten seconds. */
static void* signal_later(void* argument) {
  LateProducer* late = argument;
  for (int waited = 0; !atomic_load(&late->returned) && waited < 10000; ++waited) {
    client_sleep_ms(1);
  }
  client_sleep_ms(50);
  exporter_signal(late->shared, 1);
  return NULL;
}

/* A wait holds the stream, not the caller: Run returns, the result comes after the signal. */
static void test_late_signal(Rig* rig) {
  const Client* client = &rig->client;
  fill(rig, 30.0f);
  OrtRunOptions* options = client_run_options(client, rig->stream, false);
  pthread_t producer;
  LateProducer late = {.shared = rig->shared};
  CHECK(pthread_create(&producer, NULL, signal_later, &late) == 0);
  OK(client, client->interop->WaitSemaphore(rig->importer, rig->semaphore, rig->stream, 1));
  client_run(client, rig->session, options, rig->x, &rig->y);
  OK(client, client->interop->SignalSemaphore(rig->importer, rig->semaphore, rig->stream, 2));
  CHECK(exporter_value(rig->shared) == 0);
  CHECK(rig->outside[HALF / 4] == -1.0f);
  atomic_store(&late.returned, true);
  CHECK(exporter_wait(rig->shared, 2));
  CHECK(passed_through(rig));
  pthread_join(producer, NULL);
  client->api->ReleaseRunOptions(options);
}

/* The same with a producer in another process, which knows nothing but the descriptor. */
static void test_other_process(Rig* rig) {
  const Client* client = &rig->client;
  fill(rig, 60.0f);
  int inherited = fcntl(rig->semaphore_fd, F_DUPFD, 3);
  char number[16];
  (void)snprintf(number, sizeof number, "%d", inherited);
  char mode[] = "--signal";
  char value[] = "3";
  char delay[] = "100";
  char* arguments[] = {mode, mode, number, value, delay, NULL};
  pid_t child = 0;
  OrtRunOptions* options = client_run_options(client, rig->stream, false);
  OK(client, client->interop->WaitSemaphore(rig->importer, rig->semaphore, rig->stream, 3));
  client_run(client, rig->session, options, rig->x, &rig->y);
  OK(client, client->interop->SignalSemaphore(rig->importer, rig->semaphore, rig->stream, 4));
  CHECK(rig->outside[HALF / 4] == -1.0f);
  CHECK(posix_spawn(&child, rig->program, NULL, NULL, arguments, environ) == 0);
  CHECK(exporter_wait(rig->shared, 4));
  CHECK(passed_through(rig));
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  close(inherited);
  client->api->ReleaseRunOptions(options);
}

/* Copies to and from the CPU's nodes go through the EP's two memcpy kernels. */
static void test_beside_cpu_nodes(Rig* rig) {
  const Client* client = &rig->client;
  static const char* const operators[] = {"Identity", "Neg", "Identity", "Abs", "Identity"};
  OrtSession* session = client_session(client, operators, 5, 1, SHAPE, 2);
  const OrtEpDevice* device = NULL;
  OK(client, client->api->SessionGetEpDeviceForOutputs(session, &device, 1));
  CHECK(device == client->device);
  OrtRunOptions* options = client_run_options(client, rig->stream, true);
  for (int round = 0; round < 20; ++round) {
    fill(rig, -8.0f);
    client_run(client, session, round % 2 == 0 ? options : NULL, rig->x, &rig->y);
    for (int i = 0; i < 16; ++i) {
      CHECK(rig->outside[HALF / 4 + i] == (i < 8 ? 8.0f - (float)i : (float)i - 8.0f));
    }
  }
  client->api->ReleaseRunOptions(options);
  client->api->ReleaseSession(session);
}

/* Tensors of the CPU are fed and fetched by copies. */
static void test_cpu_tensors(Rig* rig) {
  const Client* client = &rig->client;
  float in[16];
  for (int i = 0; i < 16; ++i) {
    in[i] = (float)i * 3.0f;
  }
  OrtMemoryInfo* cpu = NULL;
  OrtValue* x = NULL;
  OrtValue* y = NULL;
  OK(client, client->api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
  OK(client, client->api->CreateTensorWithDataAsOrtValue(cpu, in, sizeof in, SHAPE, 2,
                                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x));
  client_run(client, rig->session, NULL, x, &y);
  void* out = NULL;
  OK(client, client->api->GetTensorMutableData(y, &out));
  CHECK(memcmp(in, out, sizeof in) == 0);
  client->api->ReleaseValue(x);
  client->api->ReleaseValue(y);
  client->api->ReleaseMemoryInfo(cpu);
}

static void test_io_binding(Rig* rig) {
  const Client* client = &rig->client;
  const OrtApi* api = client->api;
  fill(rig, 90.0f);
  OrtIoBinding* binding = NULL;
  OK(client, api->CreateIoBinding(rig->session, &binding));
  OK(client, api->BindInput(binding, "X", rig->x));
  OK(client, api->BindOutput(binding, "Y", rig->y));
  OrtRunOptions* options = client_run_options(client, rig->stream, true);
  OK(client, api->RunWithBinding(rig->session, options, binding));
  CHECK(passed_through(rig));
  rig->outside[2] = 1234.0f;
  OK(client, api->RunWithBinding(rig->session, options, binding));
  CHECK(passed_through(rig));
  api->ReleaseRunOptions(options);
  api->ReleaseIoBinding(binding);
}

/* From 1.31 on binding a CPU tensor copies on the session's own stream; OrtEp::Sync waits for it,
 * and not for a stream of the application's that is held up. */
static void test_bind_cpu_input(Rig* rig) {
  const Client* client = &rig->client;
  const OrtApi* api = client->api;
  static float in[16];
  OrtMemoryInfo* cpu = NULL;
  OrtValue* x = NULL;
  OK(client, api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
  OK(client, api->CreateTensorWithDataAsOrtValue(cpu, in, sizeof in, SHAPE, 2,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x));
  OrtIoBinding* binding = NULL;
  OK(client, api->CreateIoBinding(rig->session, &binding));
  OrtRunOptions* options = client_run_options(client, rig->stream, true);
  OrtSyncStream* held = NULL;
  OK(client, api->CreateSyncStreamForEpDevice(client->device, NULL, &held));
  OK(client, client->interop->WaitSemaphore(rig->importer, rig->semaphore, held, 9));
  for (int round = 0; round < 50; ++round) {
    in[0] = (float)round;
    fill(rig, 0.0f);
    OK(client, api->BindInput(binding, "X", x));
    OK(client, api->BindOutput(binding, "Y", rig->y));
    OK(client, api->SynchronizeBoundInputs(binding));
    OK(client, api->RunWithBinding(rig->session, options, binding));
    CHECK(memcmp(in, rig->outside + HALF / 4, sizeof in) == 0);
  }
  exporter_signal(rig->shared, 9);
  api->ReleaseSyncStream(held);
  api->ReleaseRunOptions(options);
  api->ReleaseIoBinding(binding);
  api->ReleaseValue(x);
  api->ReleaseMemoryInfo(cpu);
}

int main(int argc, char** argv) {
  if (argc == 5 && strcmp(argv[1], "--signal") == 0) {
    void* shared = exporter_map(atoi(argv[2]));
    CHECK(shared != NULL);
    client_sleep_ms((unsigned)atoi(argv[4]));
    exporter_signal(shared, (uint64_t)atoi(argv[3]));
    return 0;
  }
  CHECK(argc == 3 || argc == 4);
  static const struct {
    const char* name;
    void (*run)(Rig*);
  } tests[] = {
      {"zero_copy", test_zero_copy},
      {"plain_run", test_plain_run},
      {"input_is_output", test_input_is_output},
      {"late_signal", test_late_signal},
      {"other_process", test_other_process},
      {"beside_cpu_nodes", test_beside_cpu_nodes},
      {"cpu_tensors", test_cpu_tensors},
      {"io_binding", test_io_binding},
      {"bind_cpu_input", test_bind_cpu_input},
  };
  static Rig rig;
  rig.program = argv[0];
  rig_open(&rig, argv[1], argv[2]);
  if (argc == 4) {
    OK(&rig.client,
       rig.client.interop->WaitSemaphore(rig.importer, rig.semaphore, rig.stream, 1000));
    test_plain_run(&rig);
    puts("left");
    return 0;
  }
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
    tests[i].run(&rig);
    printf("ok %s\n", tests[i].name);
    fflush(stdout);
  }
  rig_close(&rig);
  printf("passed %zu\n", sizeof tests / sizeof tests[0]);
  return 0;
}
