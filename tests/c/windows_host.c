/*
 * The host EP in a real onnxruntime.dll: a host allocation, used in place by a session on a stream.
 *
 * windows_host ONNXRUNTIME_DLL EP_DLL MODEL      (input -> Identity -> output, 16 floats)
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#include "../../templates/scaffold/tests/wine_exit.h"
#include "ort_interop_abi.h"

#define SIZE 8192
#define HALF 4096

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

#define OK(status) expect_ok((status), __LINE__)

static const OrtApi* api;

static void expect_ok(OrtStatus* status, int line) {
  if (status != NULL) {
    fprintf(stderr, "line %d: %s\n", line, api->GetErrorMessage(status));
    exit(1);
  }
}

static void load(const wchar_t* path) {
  HMODULE library = LoadLibraryW(path);
  CHECK(library != NULL);
  FARPROC address = GetProcAddress(library, "OrtGetApiBase");
  CHECK(address != NULL);
  const OrtApiBase*(ORT_API_CALL * get_base)(void);
  memcpy(&get_base, &address, sizeof get_base);
  api = get_base()->GetApi(24);
  CHECK(api != NULL);
}

static const OrtEpDevice* find_device(OrtEnv* env) {
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  OK(api->GetEpDevices(env, &devices, &count));
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(api->EpDevice_EpName(devices[i]), "HostInteropExecutionProvider") == 0) {
      return devices[i];
    }
  }
  CHECK(false);
  return NULL;
}

static OrtSession* open_session(OrtEnv* env, const OrtEpDevice* device, const wchar_t* model_path) {
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  OK(api->CreateSessionOptions(&options));
  OK(api->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, NULL, NULL, 0));
  OK(api->CreateSession(env, model_path, options, &session));
  api->ReleaseSessionOptions(options);
  return session;
}

/* What needs file descriptors is declined, and at import too. */
static void check_probes(const OrtInteropApi* interop, OrtExternalResourceImporter* importer) {
  bool can = true;
  OK(interop->CanImportMemory(importer, ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD, &can));
  CHECK(!can);
  OK(interop->CanImportSemaphore(importer, ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD,
                                 &can));
  CHECK(!can);
  OK(interop->CanImportMemory(importer, ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION, &can));
  CHECK(can);
  OrtExternalMemoryDescriptor descriptor = {
      .version = 30,
      .handle_type = ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD,
      .size_bytes = SIZE,
  };
  OrtExternalMemoryHandle* handle = NULL;
  OrtStatus* status = interop->ImportMemory(importer, &descriptor, &handle);
  CHECK(status != NULL && handle == NULL);
  api->ReleaseStatus(status);
  descriptor.handle_type = ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION;
  descriptor.native_handle = VirtualAlloc(NULL, SIZE, MEM_RESERVE, PAGE_READWRITE);
  status = interop->ImportMemory(importer, &descriptor, &handle);
  CHECK(status != NULL && strstr(api->GetErrorMessage(status), "are mapped") != NULL);
  api->ReleaseStatus(status);
}

int wmain(int argc, wchar_t** argv);

int wmain(int argc, wchar_t** argv) {
  CHECK(argc == 4);
  load(argv[1]);
  OrtEnv* env = NULL;
  OK(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "windows_host", &env));
  /* A name outside ASCII, because paths are wide characters here. Names outside the ANSI code page
   * are refused by ONNX Runtime itself. */
  wchar_t wide_path[MAX_PATH];
  CHECK(swprintf(wide_path, MAX_PATH, L"%ls.gr\x00f6\x00df.dll", argv[2]) > 0);
  CHECK(CopyFileW(argv[2], wide_path, FALSE));
  OK(api->RegisterExecutionProviderLibrary(env, "host_interop", wide_path));
  const OrtEpDevice* device = find_device(env);
  const OrtInteropApi* interop = api->GetInteropApi();
  OrtExternalResourceImporter* importer = NULL;
  OK(interop->CreateExternalResourceImporterForDevice(device, &importer));
  CHECK(importer != NULL);
  check_probes(interop, importer);

  float* pages = VirtualAlloc(NULL, SIZE, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
  CHECK(pages != NULL);
  const OrtExternalMemoryDescriptor descriptor = {
      .version = 30,
      .handle_type = ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION,
      .native_handle = pages,
      .size_bytes = SIZE,
  };
  OrtExternalMemoryHandle* memory = NULL;
  OK(interop->ImportMemory(importer, &descriptor, &memory));
  const int64_t shape[] = {16};
  OrtExternalTensorDescriptor tensor = {
      .version = 24,
      .element_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
      .shape = shape,
      .rank = 1,
  };
  OrtValue* x = NULL;
  OrtValue* y = NULL;
  OK(interop->CreateTensorFromMemory(importer, memory, &tensor, &x));
  tensor.offset_bytes = HALF;
  OK(interop->CreateTensorFromMemory(importer, memory, &tensor, &y));

  OrtSession* session = open_session(env, device, argv[3]);
  OrtSyncStream* stream = NULL;
  OrtRunOptions* options = NULL;
  OK(api->CreateSyncStreamForEpDevice(device, NULL, &stream));
  OK(api->CreateRunOptions(&options));
  api->RunOptionsSetSyncStream(options, stream);
  static const char* const input_names[] = {"input"};
  static const char* const output_names[] = {"output"};
  const OrtValue* inputs[] = {x};
  for (int round = 0; round < 3; ++round) {
    pages[15] = (float)round + 0.5f;
    OK(api->Run(session, options, input_names, inputs, 1, output_names, 1, &y));
    CHECK(pages[HALF / sizeof *pages + 15] == (float)round + 0.5f);
  }
  api->ReleaseRunOptions(options);
  api->ReleaseSession(session);
  interop->ReleaseExternalMemoryHandle(memory);
  api->ReleaseValue(x);
  api->ReleaseValue(y);
  api->ReleaseSyncStream(stream);
  interop->ReleaseExternalResourceImporter(importer);
  OK(api->UnregisterExecutionProviderLibrary(env, "host_interop"));
  api->ReleaseEnv(env);
  CHECK(wine_exit_wait());
  puts("passed");
  return 0;
}
