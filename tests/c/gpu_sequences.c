/*
 * Prints what the driver is called with in each method of the importer: a line `== Method`, then the
 * mock's records.
 *
 * gpu_sequences ORT_LIBRARY EP_LIBRARY
 */
#include <fcntl.h>
#include <unistd.h>

#include "gpu_mock.h"

#define SIZE 8192
#define OFFSET 4096

static Mock mock;

static void begin(const char* method) {
  printf("== %s\n", method);
  mock.forget_calls();
}

static void end(void) {
  for (size_t i = 0; i < mock.call_count(); ++i) {
    printf("%s\n", mock.call(i));
  }
}

static void wait_idle(const OrtApi* api, OrtSyncStream* stream) {
  OrtSyncStreamImpl* impl = (OrtSyncStreamImpl*)api->GetEpApi()->SyncStream_GetImpl(stream);
  CHECK(impl->Flush(impl) == NULL);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  mock = mock_open();
  Client client;
  client_open(&client, argv[1], argv[2]);
  const OrtInteropApi* interop = client.interop;
  OrtExternalResourceImporter* importer = NULL;
  OK(&client, interop->CreateExternalResourceImporterForDevice(client.device, &importer));
  CHECK(importer != NULL);
  OrtSyncStream* stream = client_stream(&client);
  int memory_fd = (int)mock.export_memory(SIZE);
  int semaphore_fd = (int)mock.export_semaphore();
  uint64_t* value = mock.map(semaphore_fd, sizeof *value);
  printf("memory fd %d, semaphore fd %d\n", memory_fd, semaphore_fd);
  size_t fds = client_open_fds();

  begin("ImportMemory");
  OrtExternalMemoryHandle* memory = client_import(&client, importer, memory_fd, SIZE, OFFSET);
  end();
  begin("ImportSemaphore");
  OrtExternalSemaphoreHandle* semaphore = client_import_semaphore(&client, importer, semaphore_fd);
  end();
  /* The imports have descriptors of their own. */
  CHECK(fcntl(memory_fd, F_GETFD) >= 0 && fcntl(semaphore_fd, F_GETFD) >= 0);
  CHECK(client_open_fds() == fds + 2);
  begin("CreateTensorFromMemory");
  const int64_t shape[] = {SIZE - OFFSET};
  OrtValue* tensor =
      client_tensor(&client, importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, shape, 1, 0);
  end();
  begin("SignalSemaphore");
  OK(&client, interop->SignalSemaphore(importer, semaphore, stream, 7));
  end();
  wait_idle(client.api, stream);
  CHECK(semaphore_value(value) == 7);
  begin("WaitSemaphore");
  OK(&client, interop->WaitSemaphore(importer, semaphore, stream, 7));
  end();
  wait_idle(client.api, stream);
  client.api->ReleaseSyncStream(stream);
  begin("ReleaseValueLeavesMapping");
  interop->ReleaseExternalMemoryHandle(memory);
  end();
  begin("ReleaseMemory");
  client.api->ReleaseValue(tensor);
  end();
  begin("ReleaseSemaphore");
  interop->ReleaseExternalSemaphoreHandle(semaphore);
  end();
  interop->ReleaseExternalResourceImporter(importer);
#ifdef MOCK_CONTEXTS
  mock_settle(&mock, MOCK_CONTEXTS);
#endif
  CHECK(client_open_fds() == fds);
  mock.unmap(value, sizeof *value);
  mock.close(memory_fd);
  mock.close(semaphore_fd);
  client_close(&client);
  mock_settle(&mock, 0);
  mock_check(&mock);
  return 0;
}
