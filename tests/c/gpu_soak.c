/*
 * Imports and releases, many times: descriptors and memory of the process stay as they are.
 *
 * gpu_soak ORT_LIBRARY EP_LIBRARY CYCLES
 */
#include <unistd.h>

#include "gpu_mock.h"

#define SIZE 8192
#define MOST_PAGES_MORE 256

static long resident_pages(void) {
  FILE* file = fopen("/proc/self/statm", "r");
  long total = 0;
  long resident = 0;
  CHECK(file != NULL && fscanf(file, "%ld %ld", &total, &resident) == 2);
  fclose(file);
  return resident;
}

static void cycle(const Client* client, OrtExternalResourceImporter* importer,
                  OrtSyncStream* stream, int memory_fd, int semaphore_fd) {
  static const int64_t shape[] = {SIZE};
  OrtExternalMemoryHandle* memory = client_import(client, importer, memory_fd, SIZE, 0);
  OrtExternalSemaphoreHandle* semaphore = client_import_semaphore(client, importer, semaphore_fd);
  OrtValue* tensor =
      client_tensor(client, importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, shape, 1, 0);
  OK(client, client->interop->SignalSemaphore(importer, semaphore, stream, 1));
  client->interop->ReleaseExternalMemoryHandle(memory);
  client->interop->ReleaseExternalSemaphoreHandle(semaphore);
  client->api->ReleaseValue(tensor);
}

int main(int argc, char** argv) {
  CHECK(argc == 4);
  int cycles = atoi(argv[3]);
  Mock mock = mock_open();
  mock.set_recording(false);
  Client client;
  client_open(&client, argv[1], argv[2]);
  OrtExternalResourceImporter* importer = NULL;
  OK(&client, client.interop->CreateExternalResourceImporterForDevice(client.device, &importer));
  OrtSyncStream* stream = client_stream(&client);
  int memory_fd = (int)mock.export_memory(SIZE);
  int semaphore_fd = (int)mock.export_semaphore();
  size_t fds = 0;
  long pages = 0;
  for (int i = -(cycles / 10); i < cycles; ++i) {
    if (i == 0) {
      mock_settle_imports(&mock);
      fds = client_open_fds();
      pages = resident_pages();
    }
    cycle(&client, importer, stream, memory_fd, semaphore_fd);
    if (i % 64 == 0) {
      /* Releases that are put off must not pile up faster than one thread works them off. */
      mock_settle_imports(&mock);
    }
  }
  mock_settle_imports(&mock);
  long grown = resident_pages() - pages;
  CHECK(client_open_fds() == fds);
  CHECK(grown < MOST_PAGES_MORE);
  client.api->ReleaseSyncStream(stream);
  client.interop->ReleaseExternalResourceImporter(importer);
  mock.close(memory_fd);
  mock.close(semaphore_fd);
  client_close(&client);
  mock_settle(&mock, 0);
  mock_check(&mock);
  printf("%d cycles, %ld pages more, %zu descriptors\n", cycles, grown, fds);
  return 0;
}
