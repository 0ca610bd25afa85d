/*
 * Bad input for the importer's slots: every row is refused with a status that names the field, the
 * out-parameter is null, no status and no descriptor is left over, and the driver is not called.
 *
 * importer_hostile ORT_LIBRARY EP_LIBRARY
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "direct.h"
#include "exporter.h"

#define SIZE 8192

static size_t rows;
/* Only whoever opens a descriptor can tell what is behind it; nothing else reaches the driver. */
static bool driver_tells;

static OrtExternalMemoryDescriptor good_memory(int fd) {
  return (OrtExternalMemoryDescriptor){
      .version = 24,
      .handle_type = ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD,
      .native_handle = (void*)(intptr_t)fd,
      .size_bytes = SIZE,
  };
}

static OrtExternalSemaphoreDescriptor good_semaphore(int fd) {
  return (OrtExternalSemaphoreDescriptor){
      .version = 24,
      .type = ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD,
      .native_handle = (void*)(intptr_t)fd,
  };
}

static void refuse_memory(const Direct* direct, OrtExternalMemoryDescriptor descriptor,
                          OrtErrorCode code, const char* text) {
  OrtExternalMemoryHandle* handle = (OrtExternalMemoryHandle*)&rows;
  size_t fds = client_open_fds();
  size_t calls = exporter_driver_calls();
  expect_refusal(direct->importer->ImportMemory(direct->importer, &descriptor, &handle), code, text,
                 text);
  CHECK(handle == NULL && client_open_fds() == fds);
  CHECK(driver_tells || exporter_driver_calls() == calls);
  ++rows;
}

static void refuse_semaphore(const Direct* direct, OrtExternalSemaphoreDescriptor descriptor,
                             OrtErrorCode code, const char* text) {
  OrtExternalSemaphoreHandle* handle = (OrtExternalSemaphoreHandle*)&rows;
  size_t fds = client_open_fds();
  size_t calls = exporter_driver_calls();
  expect_refusal(direct->importer->ImportSemaphore(direct->importer, &descriptor, &handle), code,
                 text, text);
  CHECK(handle == NULL && client_open_fds() == fds);
  CHECK(driver_tells || exporter_driver_calls() == calls);
  ++rows;
}

static OrtExternalMemoryHandle* import(const Direct* direct,
                                       const OrtExternalMemoryDescriptor* descriptor) {
  OrtExternalMemoryHandle* handle = NULL;
  expect_ok(direct->importer->ImportMemory(direct->importer, descriptor, &handle), "import");
  CHECK(handle != NULL);
  return handle;
}

#ifndef MOCK_FILE
static int named_memfd(const char* name, int seals) {
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(fd >= 0 && ftruncate(fd, SIZE) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
  return fd;
}
#endif

static void test_memory_fields(const Direct* direct) {
  int fd = exporter_memory(SIZE);
  const OrtExternalMemoryDescriptor good = good_memory(fd);
  OrtExternalMemoryDescriptor bad = good;
  for (uint32_t version = 0; version < 24; version += 11) {
    bad.version = version;
    refuse_memory(direct, bad, ORT_INVALID_ARGUMENT, "version is ");
  }
  bad = good;
  static const uint32_t types[] = {0, 1, 2, 5, 6, 255, INT32_MAX, UINT32_MAX};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i) {
    bad.handle_type = (OrtExternalMemoryHandleType)types[i];
    CHECK(!direct->importer->CanImportMemory(direct->importer, bad.handle_type));
    refuse_memory(direct, bad, ORT_INVALID_ARGUMENT, "handle_type is ");
  }
  bad = good;
  bad.size_bytes = 0;
  refuse_memory(direct, bad, ORT_INVALID_ARGUMENT, "size_bytes is 0");
  driver_tells = true;
  static const size_t sizes[] = {SIZE + 1, SIZE_MAX / 2, SIZE_MAX - 1, SIZE_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    bad.size_bytes = sizes[i];
    refuse_memory(direct, bad, ORT_INVALID_ARGUMENT, EXPORTER_REFUSED_SIZE);
  }
  driver_tells = false;
  bad = good;
  static const size_t offsets[] = {SIZE + 1, SIZE_MAX / 2, SIZE_MAX - 1, SIZE_MAX};
  for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; ++i) {
    bad.offset_bytes = offsets[i];
    refuse_memory(direct, bad, ORT_INVALID_ARGUMENT, "offset_bytes is ");
  }
  bad = good;
  static const intptr_t handles[] = {-1, INT_MIN, INTPTR_MIN, (intptr_t)INT_MAX + 1, INTPTR_MAX};
  for (size_t i = 0; i < sizeof handles / sizeof handles[0]; ++i) {
    bad.native_handle = (void*)handles[i];
    refuse_memory(direct, bad, ORT_INVALID_ARGUMENT, "not a file descriptor");
  }
  bad.native_handle = (void*)(intptr_t)INT_MAX;
  refuse_memory(direct, bad, ORT_INVALID_ARGUMENT, "native_handle is 2147483647, not an open");
  close(fd);
  refuse_memory(direct, good, ORT_INVALID_ARGUMENT, "not an open file descriptor");
}

static void refuse_fd(const Direct* direct, int fd, OrtErrorCode code, const char* text) {
  CHECK(fd >= 0);
  refuse_memory(direct, good_memory(fd), code, text);
  close(fd);
}

static void test_memory_files(const Direct* direct) {
  int pipes[2];
  CHECK(pipe(pipes) == 0);
  close(pipes[1]);
  const char* mark = EXPORTER_REFUSED_MEMORY;
  driver_tells = true;
  refuse_fd(direct, pipes[0], ORT_INVALID_ARGUMENT, mark);
  refuse_fd(direct, open("/dev/null", O_RDWR), ORT_INVALID_ARGUMENT, mark);
  refuse_fd(direct, open("/", O_RDONLY | O_DIRECTORY), ORT_INVALID_ARGUMENT, mark);
  refuse_fd(direct, open("/proc/self/exe", O_RDONLY), ORT_INVALID_ARGUMENT, mark);
#ifndef MOCK_FILE
  refuse_fd(direct, named_memfd("lavapipe", F_SEAL_SHRINK), ORT_INVALID_ARGUMENT, mark);
  refuse_fd(direct, named_memfd("ort-interop-memory2", F_SEAL_SHRINK), ORT_INVALID_ARGUMENT, mark);
  refuse_fd(direct, named_memfd("xort-interop-memory", F_SEAL_SHRINK), ORT_INVALID_ARGUMENT, mark);
  refuse_fd(direct, ort_interop_host_create_semaphore(NULL, 0), ORT_INVALID_ARGUMENT, mark);
  refuse_fd(direct, named_memfd("ort-interop-memory", 0), ORT_INVALID_ARGUMENT, "F_SEAL_SHRINK");
  refuse_fd(direct, named_memfd("ort-interop-memory", F_SEAL_SHRINK | F_SEAL_WRITE), ORT_EP_FAIL,
            "mmap");
  refuse_fd(direct, ort_interop_host_create_memory(NULL, 0), ORT_INVALID_ARGUMENT, "has 0 bytes");
  int writable = exporter_memory(SIZE);
  char path[48];
  (void)snprintf(path, sizeof path, "/proc/self/fd/%d", writable);
  refuse_fd(direct, open(path, O_RDONLY), ORT_EP_FAIL, "mmap");
  close(writable);
#endif
  driver_tells = false;
}

static void test_semaphores(const Direct* direct) {
  int fd = exporter_semaphore(5);
  const OrtExternalSemaphoreDescriptor good = good_semaphore(fd);
  OrtExternalSemaphoreDescriptor bad = good;
  bad.version = 23;
  refuse_semaphore(direct, bad, ORT_INVALID_ARGUMENT, "version is 23");
  bad.version = 0;
  refuse_semaphore(direct, bad, ORT_INVALID_ARGUMENT, "version is 0");
  bad = good;
  static const uint32_t types[] = {0, 1, 3, 255, INT32_MAX, UINT32_MAX};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i) {
    bad.type = (OrtExternalSemaphoreType)types[i];
    CHECK(!direct->importer->CanImportSemaphore(direct->importer, bad.type));
    refuse_semaphore(direct, bad, ORT_INVALID_ARGUMENT, "type is ");
  }
  bad = good;
  bad.native_handle = (void*)(intptr_t)-1;
  refuse_semaphore(direct, bad, ORT_INVALID_ARGUMENT, "native_handle is -1");
  driver_tells = true;
#ifdef MOCK_FILE
  int wrong = open("/dev/null", O_RDWR);
#else
  int wrong = exporter_memory(SIZE);
#endif
  refuse_semaphore(direct, good_semaphore(wrong), ORT_INVALID_ARGUMENT, EXPORTER_REFUSED_SEMAPHORE);
  close(wrong);
#ifndef MOCK_FILE
  int small = memfd_create("ort-interop-semaphore", MFD_ALLOW_SEALING);
  CHECK(fcntl(small, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  refuse_semaphore(direct, good_semaphore(small), ORT_INVALID_ARGUMENT, "has 0 bytes");
  close(small);
  int blank = named_memfd("ort-interop-semaphore", F_SEAL_SHRINK);
  refuse_semaphore(direct, good_semaphore(blank), ORT_EP_FAIL, "version 1");
  close(blank);
  uint32_t version = 2;
  CHECK(pwrite(fd, &version, sizeof version, 8) == (ssize_t)sizeof version);
  refuse_semaphore(direct, good, ORT_EP_FAIL, "version 1");
#endif
  driver_tells = false;
  close(fd);
}

static void refuse_tensor(const Direct* direct, const OrtExternalMemoryHandle* handle,
                          OrtExternalTensorDescriptor descriptor, const char* text) {
  OrtValue* tensor = (OrtValue*)&rows;
  size_t calls = exporter_driver_calls();
  expect_refusal(
      direct->importer->CreateTensorFromMemory(direct->importer, handle, &descriptor, &tensor),
      ORT_INVALID_ARGUMENT, text, text);
  CHECK(tensor == NULL && exporter_driver_calls() == calls);
  ++rows;
}

static void test_tensors(const Direct* direct) {
  int fd = exporter_memory(SIZE);
  OrtExternalMemoryDescriptor memory = good_memory(fd);
  memory.offset_bytes = 4096;
  OrtExternalMemoryHandle* handle = import(direct, &memory);
  const int64_t shape[] = {1024};
  const OrtExternalTensorDescriptor good = {.version = 24,
                                            .element_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                            .shape = shape,
                                            .rank = 1};
  OrtExternalTensorDescriptor bad = good;
  bad.version = 23;
  refuse_tensor(direct, handle, bad, "version is 23");
  bad = good;
  static const uint32_t types[] = {0, 8, 27, 28, 1000, INT32_MAX, UINT32_MAX};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i) {
    bad.element_type = (ONNXTensorElementDataType)types[i];
    refuse_tensor(direct, handle, bad, "element_type is ");
  }
  bad = good;
  bad.shape = NULL;
  refuse_tensor(direct, handle, bad, "shape is null although rank is 1");
  bad = good;
  static const size_t ranks[] = {65, 1000, SIZE_MAX};
  for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; ++i) {
    bad.rank = ranks[i];
    refuse_tensor(direct, handle, bad, "more than 64");
  }
  static const struct {
    int64_t shape[3];
    const char* text;
  } shapes[] = {
      {{-1, 1, 1}, "shape[0] is -1"},
      {{1, 1, INT64_MIN}, "shape[2] is -9223372036854775808"},
      {{INT64_MAX, 2, 1}, "shape[1] is 2"},
      {{0, INT64_MAX, INT64_MAX}, "shape[2] is 9223372036854775807"},
      {{INT64_C(1) << 32, INT64_C(1) << 32, 1}, "shape[1] is 4294967296"},
      {{INT64_MAX, 1, 1}, "overflows"},
      {{INT64_C(1) << 61, 2, 1}, "overflows"},
      {{1025, 1, 1}, "needs 4100 bytes"},
      {{INT64_C(1) << 60, 1, 1}, "needs 4611686018427387904 bytes"},
  };
  bad.rank = 3;
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i) {
    bad.shape = shapes[i].shape;
    refuse_tensor(direct, handle, bad, shapes[i].text);
  }
  bad = good;
  static const struct {
    size_t offset;
    const char* text;
  } offsets[] = {{4, "offset_bytes 4"},
                 {4097, "past the end"},
                 {SIZE, "past the end"},
                 {SIZE_MAX, "past the end"},
                 {SIZE_MAX - 4095, "past the end"}};
  for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; ++i) {
    bad.offset_bytes = offsets[i].offset;
    refuse_tensor(direct, handle, bad, offsets[i].text);
  }
  static const struct {
    ONNXTensorElementDataType type;
    size_t offset;
  } misaligned[] = {
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2},     {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 1},
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, 3},  {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 4},
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, 12},   {ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64, 2},
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128, 4}};
  bad.rank = 0;
  for (size_t i = 0; i < sizeof misaligned / sizeof misaligned[0]; ++i) {
    bad.element_type = misaligned[i].type;
    bad.offset_bytes = misaligned[i].offset;
    refuse_tensor(direct, handle, bad, "needs a multiple of ");
  }
  OrtExternalMemoryHandle copy = *handle;
  refuse_tensor(direct, &copy, good, "not a live memory handle");
  refuse_tensor(direct, (const OrtExternalMemoryHandle*)(uintptr_t)8, good, "not a live memory");
  handle->Release(handle);
  refuse_tensor(direct, handle, good, "not a live memory handle");
  close(fd);
}

static void test_streams(const Direct* direct) {
  int memory_fd = exporter_memory(SIZE);
  int fd = exporter_semaphore(5);
  const OrtExternalMemoryDescriptor memory_descriptor = good_memory(memory_fd);
  const OrtExternalSemaphoreDescriptor descriptor = good_semaphore(fd);
  OrtExternalMemoryHandle* memory = import(direct, &memory_descriptor);
  OrtExternalSemaphoreHandle* semaphore = NULL;
  OrtExternalResourceImporterImpl* importer = direct->importer;
  expect_ok(importer->ImportSemaphore(importer, &descriptor, &semaphore), "semaphore");
  OrtExternalSemaphoreHandle copy = *semaphore;
  const struct {
    OrtExternalSemaphoreHandle* handle;
    OrtSyncStream* stream;
    const char* text;
  } calls[] = {
      {NULL, direct->stream, "handle is null"},
      {semaphore, NULL, "stream is null"},
      {semaphore, foreign_stream, "stream was not made by " EP_NAME_UNDER_TEST},
      {&copy, direct->stream, "not a live semaphore handle"},
      {(OrtExternalSemaphoreHandle*)memory, direct->stream, "not a live semaphore handle"},
  };
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) {
    expect_refusal(importer->WaitSemaphore(importer, calls[i].handle, calls[i].stream, 1),
                   ORT_INVALID_ARGUMENT, calls[i].text, "wait");
    expect_refusal(importer->SignalSemaphore(importer, calls[i].handle, calls[i].stream, 9),
                   ORT_INVALID_ARGUMENT, calls[i].text, "signal");
    rows += 2;
  }
  refuse_tensor(direct, (const OrtExternalMemoryHandle*)semaphore,
                (OrtExternalTensorDescriptor){.version = 24, .element_type = 1},
                "not a live memory handle");
  semaphore->Release(semaphore);
  expect_refusal(importer->WaitSemaphore(importer, semaphore, direct->stream, 1),
                 ORT_INVALID_ARGUMENT, "not a live semaphore handle", "released");
  ++rows;
  importer->ReleaseMemory(importer, memory);
  close(memory_fd);
  close(fd);
}

static void test_nulls(const Direct* direct) {
  OrtExternalResourceImporterImpl* importer = direct->importer;
  OrtExternalMemoryHandle* memory = (OrtExternalMemoryHandle*)&rows;
  OrtExternalSemaphoreHandle* semaphore = (OrtExternalSemaphoreHandle*)&rows;
  OrtValue* tensor = (OrtValue*)&rows;
  const OrtExternalMemoryHandle any = {.version = 24};
  const OrtExternalMemoryDescriptor memory_descriptor = good_memory(0);
  const OrtExternalSemaphoreDescriptor semaphore_descriptor = good_semaphore(0);
  const OrtExternalTensorDescriptor tensor_descriptor = {.version = 24, .element_type = 1};
  const struct {
    OrtStatus* status;
    const char* text;
  } calls[] = {
      {importer->ImportMemory(importer, NULL, &memory), "desc is null"},
      {importer->ImportMemory(importer, &memory_descriptor, NULL), "out_handle is null"},
      {importer->ImportSemaphore(importer, NULL, &semaphore), "desc is null"},
      {importer->ImportSemaphore(importer, &semaphore_descriptor, NULL), "out_handle is null"},
      {importer->CreateTensorFromMemory(importer, NULL, &tensor_descriptor, &tensor),
       "mem_handle is null"},
      {importer->CreateTensorFromMemory(importer, &any, NULL, &tensor), "tensor_desc is null"},
      {importer->CreateTensorFromMemory(importer, NULL, NULL, NULL), "out_tensor is null"},
  };
  CHECK(memory == NULL && semaphore == NULL && tensor == NULL);
  size_t count = sizeof calls / sizeof calls[0];
  CHECK(live_statuses() == count);
  for (size_t i = 0; i < count; ++i) {
    CHECK(direct->client.api->GetErrorCode(calls[i].status) == ORT_INVALID_ARGUMENT);
    CHECK(strstr(direct->client.api->GetErrorMessage(calls[i].status), calls[i].text) != NULL);
    release_status(calls[i].status);
  }
  CHECK(live_statuses() == 0);
  rows += count;
  importer->ReleaseMemory(importer, NULL);
  importer->ReleaseSemaphore(importer, NULL);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  static Direct direct;
  direct_open(&direct, argv[1], argv[2]);
  size_t fds = client_open_fds();
  test_memory_fields(&direct);
  test_memory_files(&direct);
  test_semaphores(&direct);
  test_tensors(&direct);
  test_streams(&direct);
  test_nulls(&direct);
  exporter_settle();
  CHECK(client_open_fds() == fds);
  direct_close(&direct);
  exporter_check();
  printf("refused %zu\n", rows);
  return 0;
}
