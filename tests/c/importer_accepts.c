/*
 * What the importer's slots must accept, and the order in which things may end.
 *
 * importer_accepts ORT_LIBRARY EP_LIBRARY
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "direct.h"
#include "exporter.h"

#define SIZE 8192

static OrtExternalMemoryDescriptor memory_of(int fd) {
  return (OrtExternalMemoryDescriptor){
      .version = 24,
      .handle_type = ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD,
      .native_handle = (void*)(intptr_t)fd,
      .size_bytes = SIZE,
  };
}

static OrtExternalMemoryHandle* import(const Direct* direct,
                                       const OrtExternalMemoryDescriptor* descriptor) {
  OrtExternalMemoryHandle* handle = NULL;
  expect_ok(direct->importer->ImportMemory(direct->importer, descriptor, &handle), "import");
  CHECK(handle != NULL);
  return handle;
}

static OrtValue* tensor_of(const Direct* direct, const OrtExternalMemoryHandle* handle,
                           ONNXTensorElementDataType type, const int64_t* shape, size_t rank,
                           size_t offset) {
  const OrtExternalTensorDescriptor descriptor = {
      .version = 24, .element_type = type, .shape = shape, .rank = rank, .offset_bytes = offset};
  OrtValue* tensor = NULL;
  expect_ok(
      direct->importer->CreateTensorFromMemory(direct->importer, handle, &descriptor, &tensor),
      "tensor");
  CHECK(tensor != NULL);
  return tensor;
}

static OrtExternalSemaphoreHandle* semaphore_of(const Direct* direct, int fd) {
  const OrtExternalSemaphoreDescriptor descriptor = {
      .version = 24,
      .type = ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD,
      .native_handle = (void*)(intptr_t)fd,
  };
  OrtExternalSemaphoreHandle* handle = NULL;
  expect_ok(direct->importer->ImportSemaphore(direct->importer, &descriptor, &handle), "semaphore");
  return handle;
}

static char* bytes_of(const Direct* direct, OrtValue* tensor) {
  void* data = NULL;
  OK(&direct->client, direct->client.api->GetTensorMutableData(tensor, &data));
  return data;
}

/* A newer client has a longer descriptor and a higher version; what is known of it is read. */
static void test_versions(Direct* direct) {
  int fd = exporter_memory(SIZE);
  static const uint32_t versions[] = {24, 25, 29, 30, 31, 99, UINT32_MAX};
  for (size_t i = 0; i < sizeof versions / sizeof versions[0]; ++i) {
    OrtExternalMemoryDescriptor descriptor = memory_of(fd);
    descriptor.version = versions[i];
    OrtExternalMemoryHandle* handle = import(direct, &descriptor);
    CHECK(handle->version == direct->factory->ort_version_supported);
    CHECK(handle->ep_device == direct->device && handle->descriptor.size_bytes == SIZE);
    CHECK(handle->descriptor.version == handle->version);
    handle->Release(handle);
  }
  close(fd);
}

/* Nothing behind a descriptor or a shape is read: there is an unmapped page. */
static void test_page_ends(Direct* direct) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
  int fd = exporter_memory(SIZE);
  OrtExternalMemoryDescriptor* descriptor =
      (OrtExternalMemoryDescriptor*)(void*)(pages + page - sizeof *descriptor);
  *descriptor = memory_of(fd);
  OrtExternalMemoryHandle* handle = import(direct, descriptor);
  int64_t* shape = (int64_t*)(void*)(pages + page - 2 * sizeof *shape);
  shape[0] = 3;
  shape[1] = 5;
  OrtValue* tensor = tensor_of(direct, handle, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, shape, 2, 0);
  direct->client.api->ReleaseValue(tensor);
  /* A scalar has no shape to read. */
  const int64_t* nothing = (const int64_t*)(void*)(pages + page);
  tensor = tensor_of(direct, handle, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, nothing, 0, SIZE - 8);
  direct->client.api->ReleaseValue(tensor);
  OrtExternalTensorDescriptor* tensor_descriptor =
      (OrtExternalTensorDescriptor*)(void*)(pages + page - sizeof *tensor_descriptor);
  const int64_t one[] = {1};
  *tensor_descriptor = (OrtExternalTensorDescriptor){
      .version = 24, .element_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, .shape = one, .rank = 1};
  expect_ok(direct->importer->CreateTensorFromMemory(direct->importer, handle, tensor_descriptor,
                                                     &tensor),
            "tensor at the page's end");
  direct->client.api->ReleaseValue(tensor);
  handle->Release(handle);
  close(fd);
  munmap(pages, 2 * page);
}

/* Sizes of all fixed-size types, empty tensors included, exactly at the region's end. */
static void test_element_types(Direct* direct) {
  static const struct {
    int type;
    unsigned bits;
    unsigned minor; /* Releases before it do not know the type. */
  } types[] = {{1, 32, 24},  {2, 8, 24},   {3, 8, 24},   {4, 16, 24},  {5, 16, 24},
               {6, 32, 24},  {7, 64, 24},  {9, 8, 24},   {10, 16, 24}, {11, 64, 24},
               {12, 32, 24}, {13, 64, 24}, {16, 16, 24}, {17, 8, 24},  {18, 8, 24},
               {19, 8, 24},  {20, 8, 24},  {21, 4, 24},  {22, 4, 24}};
  int fd = exporter_memory(SIZE);
  OrtExternalMemoryDescriptor descriptor = memory_of(fd);
  descriptor.offset_bytes = 4096;
  OrtExternalMemoryHandle* handle = import(direct, &descriptor);
  for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i) {
    int64_t shape[] = {2, 12};
    size_t bytes = (24 * types[i].bits + 7) / 8;
    OrtValue* tensor = tensor_of(direct, handle, (ONNXTensorElementDataType)types[i].type, shape, 2,
                                 (SIZE - 4096 - bytes) / 8 * 8);
    size_t size = 0;
    OK(&direct->client, direct->client.api->GetTensorSizeInBytes(tensor, &size));
    CHECK(size == bytes);
    direct->client.api->ReleaseValue(tensor);
    shape[1] = 0;
    tensor = tensor_of(direct, handle, (ONNXTensorElementDataType)types[i].type, shape, 2, 4096);
    direct->client.api->ReleaseValue(tensor);
  }
  const int64_t odd[] = {7};
  OrtValue* packed = tensor_of(direct, handle, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4, odd, 1, 4092);
  direct->client.api->ReleaseValue(packed);
  handle->Release(handle);
  close(fd);
}

/* The last page may start where the allocation ends: a region of nothing, for tensors of nothing. */
static void test_empty_region(Direct* direct) {
  int fd = exporter_memory(SIZE);
  OrtExternalMemoryDescriptor descriptor = memory_of(fd);
  descriptor.offset_bytes = SIZE;
  OrtExternalMemoryHandle* handle = import(direct, &descriptor);
  const int64_t shape[] = {0};
  OrtValue* tensor = tensor_of(direct, handle, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, shape, 1, 0);
  direct->client.api->ReleaseValue(tensor);
  handle->Release(handle);
  close(fd);
}

/* Descriptor 0 looks like a null handle, and is one that may be imported. */
static void test_fd_zero(Direct* direct) {
  int saved = dup(0);
  int fd = exporter_memory(SIZE);
  CHECK(dup2(fd, 0) == 0);
  const OrtExternalMemoryDescriptor descriptor = memory_of(0);
  OrtExternalMemoryHandle* handle = import(direct, &descriptor);
  CHECK(fcntl(0, F_GETFD) >= 0);
  handle->Release(handle);
  close(fd);
  if (saved >= 0) {
    CHECK(dup2(saved, 0) == 0);
    close(saved);
  } else {
    close(0);
  }
}

static bool host_has_allocations(const Direct* direct) {
  return direct->client.minor >= 30;
}

static void test_host_allocation(Direct* direct) {
  OrtExternalResourceImporterImpl* importer = direct->importer;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* pages = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED && munmap(pages + 2 * page, page) == 0);
  OrtExternalMemoryDescriptor descriptor = {
      .version = 30,
      .handle_type = ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION,
      .native_handle = pages,
      .size_bytes = 100,
  };
  CHECK(importer->CanImportMemory(importer, descriptor.handle_type) ==
        host_has_allocations(direct));
  OrtExternalMemoryHandle* handle = NULL;
  if (!host_has_allocations(direct)) {
    expect_refusal(importer->ImportMemory(importer, &descriptor, &handle), ORT_INVALID_ARGUMENT,
                   "handle_type is 4", "host allocation on an old host");
  } else {
    handle = import(direct, &descriptor);
    const int64_t shape[] = {10};
    OrtValue* tensor = tensor_of(direct, handle, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, shape, 1, 90);
    CHECK(bytes_of(direct, tensor) == pages + 90);
    direct->client.api->ReleaseValue(tensor);
    handle->Release(handle);
    const struct {
      char* address;
      size_t size;
      const char* text;
    } bad[] = {
        {NULL, 100, "native_handle is 0x0"},
        {pages + 1, 100, "aligned to 4096"},
#ifndef MOCK_FILE
        {pages, 3 * page, "are mapped"},
        {pages + 2 * page, 1, "are mapped"},
#endif
        {pages, SIZE_MAX, "size_bytes is"},
        {pages, SIZE_MAX - (uintptr_t)pages + 1, "size_bytes is"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
      descriptor.native_handle = bad[i].address;
      descriptor.size_bytes = bad[i].size;
      expect_refusal(importer->ImportMemory(importer, &descriptor, &handle), ORT_INVALID_ARGUMENT,
                     bad[i].text, bad[i].text);
      CHECK(handle == NULL);
    }
  }
  pages[0] = 1; /* It is still the application's. */
  munmap(pages, 4 * page);
}

/* When ONNX Runtime refuses the tensor, nothing is kept, and its message comes through. */
static void test_tensor_refused_by_ort(Direct* direct) {
  int fd = exporter_memory(SIZE);
  const OrtExternalMemoryDescriptor descriptor = memory_of(fd);
  OrtExternalMemoryHandle* handle = import(direct, &descriptor);
  const OrtExternalTensorDescriptor scalar = {.version = 24,
                                              .element_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT};
  OrtValue* tensor = NULL;
  fake_host.fail_tensors = true;
  expect_refusal(
      direct->importer->CreateTensorFromMemory(direct->importer, handle, &scalar, &tensor),
      ORT_RUNTIME_EXCEPTION, "no tensor today", "refused");
  fake_host.fail_tensors = false;
  CHECK(tensor == NULL);
  handle->Release(handle);
  close(fd);
}

/* The mapping lives as long as the last tensor in it. */
static void test_handle_before_tensor(Direct* direct) {
  int fd = exporter_memory(SIZE);
  const OrtExternalMemoryDescriptor descriptor = memory_of(fd);
  OrtExternalMemoryHandle* handle = import(direct, &descriptor);
  const int64_t shape[] = {SIZE};
  OrtValue* first = tensor_of(direct, handle, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, shape, 1, 0);
  OrtValue* second = tensor_of(direct, handle, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, shape, 1, 0);
  handle->Release(handle);
  direct->client.api->ReleaseValue(first);
  char* bytes = bytes_of(direct, second);
  bytes[SIZE - 1] = 'x';
  char read_back = 0;
  CHECK(pread(fd, &read_back, 1, SIZE - 1) == 1 && read_back == 'x');
  direct->client.api->ReleaseValue(second);
  close(fd);
}

#ifndef MOCK_FILE
/* A signal that would lower the value fails on the stream, and is told by the next flush. */
static void test_signal_backwards(Direct* direct) {
  OrtExternalResourceImporterImpl* importer = direct->importer;
  int fd = exporter_semaphore(5);
  OrtExternalSemaphoreHandle* handle = semaphore_of(direct, fd);
  OrtSyncStreamImpl* stream = NULL;
  const OrtEpApi* ep_api = direct->client.api->GetEpApi();
  stream = (OrtSyncStreamImpl*)(uintptr_t)ep_api->SyncStream_GetImpl(direct->stream);
  expect_ok(importer->WaitSemaphore(importer, handle, direct->stream, 5), "wait");
  expect_ok(importer->SignalSemaphore(importer, handle, direct->stream, 5), "signal");
  expect_ok(importer->SignalSemaphore(importer, handle, direct->stream, 7), "signal");
  OrtStatus* status = stream->Flush(stream);
  CHECK(status != NULL);
  CHECK(strstr(direct->client.api->GetErrorMessage(status),
               "value is 5, but the semaphore is "
               "already at 5") != NULL);
  direct->client.api->ReleaseStatus(status);
  status = stream->Flush(stream);
  CHECK(status == NULL);
  void* shared = exporter_map(fd);
  CHECK(exporter_value(shared) == 7);
  exporter_unmap(shared);
  importer->ReleaseSemaphore(importer, handle);
  close(fd);
}

#endif

/* Everything may outlive the importer and the factory, enqueued waits even their stream. */
static void test_everything_outlives(Direct* direct) {
  OrtExternalResourceImporterImpl* importer = direct->importer;
  int memory_fd = exporter_memory(SIZE);
  int fd = exporter_semaphore(0);
  void* shared = exporter_map(fd);
  const OrtExternalMemoryDescriptor descriptor = memory_of(memory_fd);
  OrtExternalMemoryHandle* memory = import(direct, &descriptor);
  OrtExternalSemaphoreHandle* semaphore = semaphore_of(direct, fd);
  OrtValue* tensor = tensor_of(direct, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, NULL, 0, 0);
  OrtSyncStream* stream = NULL;
  OK(&direct->client,
     direct->client.api->CreateSyncStreamForEpDevice(direct->client.device, NULL, &stream));
  expect_ok(importer->WaitSemaphore(importer, semaphore, stream, 1), "wait");
  expect_ok(importer->SignalSemaphore(importer, semaphore, stream, 2), "signal");
  direct->client.api->ReleaseSyncStream(stream);
  importer->Release(importer);
  direct->importer = NULL;
  expect_ok(direct->library.release(direct->factory), "release");
  direct->factory = NULL;
  semaphore->Release(semaphore);
  memory->Release(memory);
  bytes_of(direct, tensor)[0] = 1;
  direct->client.api->ReleaseValue(tensor);
  exporter_signal(shared, 1);
  CHECK(exporter_wait(shared, 2));
  exporter_unmap(shared);
  close(fd);
  close(memory_fd);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  static const struct {
    const char* name;
    void (*run)(Direct*);
  } tests[] = {
      {"versions", test_versions},
      {"page_ends", test_page_ends},
      {"element_types", test_element_types},
      {"empty_region", test_empty_region},
      {"fd_zero", test_fd_zero},
      {"host_allocation", test_host_allocation},
      {"tensor_refused_by_ort", test_tensor_refused_by_ort},
      {"handle_before_tensor", test_handle_before_tensor},
#ifndef MOCK_FILE
      {"signal_backwards", test_signal_backwards},
#endif
      {"everything_outlives", test_everything_outlives},
  };
  static Direct direct;
  direct_open(&direct, argv[1], argv[2]);
  size_t fds = client_open_fds();
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
    tests[i].run(&direct);
    CHECK(live_statuses() == 0);
    printf("ok %s\n", tests[i].name);
    fflush(stdout);
  }
  exporter_settle();
  CHECK(client_open_fds() == fds);
  direct_close(&direct);
  exporter_check();
  printf("passed %zu\n", sizeof tests / sizeof tests[0]);
  return 0;
}
