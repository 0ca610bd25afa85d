/*
 * Several threads at once import, make tensors, enqueue and release, on one importer.
 *
 * importer_threads ORT_LIBRARY EP_LIBRARY THREADS ROUNDS
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

#include "client.h"
#include "exporter.h"

#define SIZE 8192
#define MAX_THREADS 32

typedef struct Worker {
  const Client* client;
  OrtExternalResourceImporter* importer;
  OrtSyncStream* common; /* A stream that all threads use. */
  int rounds;
  int number;
} Worker;

/* Resident pages of the process. */
static long resident_pages(void) {
  FILE* file = fopen("/proc/self/statm", "r");
  long total = 0;
  long resident = 0;
  CHECK(file != NULL && fscanf(file, "%ld %ld", &total, &resident) == 2);
  fclose(file);
  return resident;
}

static void round_trip(const Worker* worker, OrtSyncStream* stream, int memory_fd, int semaphore_fd,
                       uint64_t* value) {
  const Client* client = worker->client;
  const OrtInteropApi* interop = client->interop;
  static const int64_t shape[] = {16, 16};
  OrtExternalMemoryHandle* memory = client_import(client, worker->importer, memory_fd, SIZE, 0);
  OrtExternalSemaphoreHandle* semaphore =
      client_import_semaphore(client, worker->importer, semaphore_fd);
  OrtValue* x = client_tensor(client, worker->importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                              shape, 2, 0);
  OrtValue* y = client_tensor(client, worker->importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                              shape, 2, 4096);
  ++*value;
  OK(client, interop->SignalSemaphore(worker->importer, semaphore, worker->common, *value));
  OK(client, interop->WaitSemaphore(worker->importer, semaphore, stream, *value));
  const OrtValue* source = x;
  OK(client, client->api->CopyTensors(client->env, &source, &y, stream, 1));
  ++*value;
  OK(client, interop->SignalSemaphore(worker->importer, semaphore, stream, *value));
  interop->ReleaseExternalMemoryHandle(memory);
  interop->ReleaseExternalSemaphoreHandle(semaphore);
  /* Still in use by the streams, which the EP must know. */
  client->api->ReleaseValue(x);
  client->api->ReleaseValue(y);
}

static void* work(void* argument) {
  const Worker* worker = argument;
  int memory_fd = exporter_memory(SIZE);
  int semaphore_fd = exporter_semaphore(0);
  void* shared = exporter_map(semaphore_fd);
  CHECK(memory_fd >= 0 && shared != NULL);
  OrtSyncStream* stream = NULL;
  OK(worker->client,
     worker->client->api->CreateSyncStreamForEpDevice(worker->client->device, NULL, &stream));
  uint64_t value = 0;
  for (int i = 0; i < worker->rounds; ++i) {
    float written = (float)(worker->number * 1000 + i);
    CHECK(pwrite(memory_fd, &written, sizeof written, 0) == (ssize_t)sizeof written);
    round_trip(worker, stream, memory_fd, semaphore_fd, &value);
    CHECK(exporter_wait(shared, value));
    float read_back = 0;
    CHECK(pread(memory_fd, &read_back, sizeof read_back, 4096) == (ssize_t)sizeof read_back);
    CHECK(read_back == written);
  }
  worker->client->api->ReleaseSyncStream(stream);
  exporter_unmap(shared);
  close(memory_fd);
  close(semaphore_fd);
  return NULL;
}

static void run_threads(Worker* workers, int threads, int rounds) {
  pthread_t ids[MAX_THREADS];
  for (int i = 0; i < threads; ++i) {
    workers[i].rounds = rounds;
    CHECK(pthread_create(&ids[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
  }
  exporter_settle();
}

int main(int argc, char** argv) {
  CHECK(argc == 5);
  int threads = atoi(argv[3]);
  int rounds = atoi(argv[4]);
  CHECK(threads > 0 && threads <= MAX_THREADS && rounds > 0);
  static Client client;
  static Worker workers[MAX_THREADS];
  exporter_forget_calls();
  client_open(&client, argv[1], argv[2]);
  OrtExternalResourceImporter* importer = NULL;
  OrtSyncStream* common = NULL;
  OK(&client, client.interop->CreateExternalResourceImporterForDevice(client.device, &importer));
  OK(&client, client.api->CreateSyncStreamForEpDevice(client.device, NULL, &common));
  for (int i = 0; i < threads; ++i) {
    workers[i] = (Worker){.client = &client, .importer = importer, .common = common, .number = i};
  }
  run_threads(workers, threads, rounds / 10 + 1);
  size_t fds = client_open_fds();
  long pages = resident_pages();
  run_threads(workers, threads, rounds);
  CHECK(client_open_fds() == fds);
  long grown = resident_pages() - pages;
  client.api->ReleaseSyncStream(common);
  client.interop->ReleaseExternalResourceImporter(importer);
  client_close(&client);
  exporter_check();
  printf("passed %d round trips on %d threads, %ld pages more\n", threads * rounds, threads, grown);
  return 0;
}
