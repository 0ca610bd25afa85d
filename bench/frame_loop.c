/*
 * The frame loop in C: wait, Run on a stream with tensors made before, signal.
 *
 * frame_loop ORT_LIBRARY EP_LIBRARY MODEL queued|finished FRAMES ROUNDS EVERY SIZE...
 *
 * runs the model on tensors of those sizes and prints, a line for each round of FRAMES frames, the
 * nanoseconds of a frame: those that passed, and those that the processor spent on the host's thread.
 * Run returns once its work is queued, or finished. The host waits for the stream after EVERY frames,
 * so that its queue stays short.
 */
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

#define SIZES 8 /* The first argument that is a size. */
#define MAX_RANK 4
#define PAGE 4096

static const char* const INPUT[] = {"input"};
static const char* const OUTPUT[] = {"output"};

static double now_ns(clockid_t clock) {
  struct timespec now;
  (void)clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static OrtSession* session_of(const Client* client, const char* model) {
  const OrtApi* api = client->api;
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  OK(client, api->CreateSessionOptions(&options));
  OK(client, api->SetSessionGraphOptimizationLevel(options, ORT_DISABLE_ALL));
  OK(client, api->SetIntraOpNumThreads(options, 1));
  OK(client, api->SessionOptionsAppendExecutionProvider_V2(options, client->env, &client->device, 1,
                                                           NULL, NULL, 0));
  OK(client, api->CreateSession(client->env, model, options, &session));
  api->ReleaseSessionOptions(options);
  return session;
}

int main(int argc, char** argv) {
  CHECK(argc > SIZES && argc <= SIZES + MAX_RANK);
  bool synchronize = strcmp(argv[4], "finished") == 0;
  uint64_t frames = strtoull(argv[5], NULL, 10);
  uint64_t rounds = strtoull(argv[6], NULL, 10);
  uint64_t every = strtoull(argv[7], NULL, 10);
  int64_t shape[MAX_RANK];
  size_t rank = (size_t)argc - SIZES;
  size_t half = sizeof(float);
  for (size_t at = 0; at < rank; ++at) {
    shape[at] = strtoll(argv[SIZES + at], NULL, 10);
    half *= (size_t)shape[at];
  }
  half = (half + PAGE - 1) / PAGE * PAGE;
  Client client;
  client_open(&client, argv[1], argv[2]);
  const OrtInteropApi* interop = client.interop;
  OrtExternalResourceImporter* importer = NULL;
  OK(&client, interop->CreateExternalResourceImporterForDevice(client.device, &importer));
  int memory_fd = ort_interop_host_create_memory("frames", 2 * half);
  int semaphore_fd = ort_interop_host_create_semaphore(NULL, 0);
  OrtInteropHostSemaphore* shared = ort_interop_host_map_semaphore(semaphore_fd);
  OrtExternalMemoryHandle* memory = client_import(&client, importer, memory_fd, 2 * half, 0);
  OrtExternalSemaphoreHandle* semaphore = client_import_semaphore(&client, importer, semaphore_fd);
  OrtValue* x =
      client_tensor(&client, importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, shape, rank, 0);
  OrtValue* y = client_tensor(&client, importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, shape,
                              rank, half);
  OrtSyncStream* stream = NULL;
  OK(&client, client.api->CreateSyncStreamForEpDevice(client.device, NULL, &stream));
  OrtSession* session = session_of(&client, argv[3]);
  OrtRunOptions* options = client_run_options(&client, stream, synchronize);

  uint64_t i = 1;
  for (uint64_t round = 0; round < rounds; ++round) {
    uint64_t end = i + frames;
    double start = now_ns(CLOCK_MONOTONIC);
    double used = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (; i < end; ++i) {
      OK(&client, interop->WaitSemaphore(importer, semaphore, stream, i - 1));
      OK(&client,
         client.api->Run(session, options, INPUT, (const OrtValue* const*)&x, 1, OUTPUT, 1, &y));
      OK(&client, interop->SignalSemaphore(importer, semaphore, stream, i));
      if (i % every == 0 || i + 1 == end) {
        CHECK(ort_interop_host_wait(shared, i, -1) == 0);
      }
    }
    printf("%.1f %.1f\n", (now_ns(CLOCK_MONOTONIC) - start) / (double)frames,
           (now_ns(CLOCK_THREAD_CPUTIME_ID) - used) / (double)frames);
  }

  client.api->ReleaseRunOptions(options);
  client.api->ReleaseSession(session);
  client.api->ReleaseValue(x);
  client.api->ReleaseValue(y);
  interop->ReleaseExternalMemoryHandle(memory);
  interop->ReleaseExternalSemaphoreHandle(semaphore);
  client.api->ReleaseSyncStream(stream);
  interop->ReleaseExternalResourceImporter(importer);
  ort_interop_host_unmap_semaphore(shared);
  close(memory_fd);
  close(semaphore_fd);
  client_close(&client);
  return 0;
}
