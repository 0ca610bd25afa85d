/*
 * A GPU's EP in a real onnxruntime.dll, beside a Direct3D 12 application that the mock of the GPU's
 * driver plays: resource, heap and fence go through everything that an application does with them.
 *
 * windows_d3d12 ONNXRUNTIME_DLL EP_DLL EP_NAME MOCK_DLL LUID MODEL [--no-heaps]   (input -> Identity -> output,
 *                                                                     16 floats)
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#include "../../templates/scaffold/tests/wine_exit.h"
#include "ort_interop_abi.h"

#define SIZE 65536
#define OFFSET 4096
#define FLOATS 16
#define BYTES (FLOATS * sizeof(float))

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

#define OK(status) expect_ok((status), __LINE__)

static const OrtApi* api;
static const OrtInteropApi* interop;
static unsigned minor;
/* Direct3D 11 opens resources and no heaps; the output is then in a second resource. */
static bool has_heaps;

/* The mock's control functions; mock.h says what they do. */
static struct {
  intptr_t (*export_memory)(size_t bytes);
  intptr_t (*export_semaphore)(void);
  void* (*map)(intptr_t exported, size_t bytes);
  void (*unmap)(void* mapped, size_t bytes);
  void (*close)(intptr_t exported);
  size_t (*live)(const char* kind);
  size_t (*offence_count)(void);
  const char* (*offence)(size_t index);
} mock;

/* What the application shares with the EP. */
typedef struct Frame {
  intptr_t resource;
  float* resource_data;
  intptr_t heap;
  float* heap_data;
  intptr_t fence;
  _Atomic uint64_t* fence_value;
} Frame;

/* What the EP makes of it. */
typedef struct Imports {
  OrtExternalResourceImporter* importer;
  OrtExternalMemoryHandle* resource;
  OrtExternalMemoryHandle* heap;
  OrtExternalSemaphoreHandle* fence;
  OrtValue* x;
  OrtValue* y;
  OrtSyncStream* stream;
} Imports;

static void expect_ok(OrtStatus* status, int line) {
  if (status != NULL) {
    fprintf(stderr, "line %d: %s\n", line, api->GetErrorMessage(status));
    exit(1);
  }
}

static void find(HMODULE library, const char* name, void* slot) {
  FARPROC found = GetProcAddress(library, name);
  CHECK(found != NULL);
  memcpy(slot, &found, sizeof found);
}

static void load_ort(const wchar_t* path) {
  HMODULE library = LoadLibraryW(path);
  CHECK(library != NULL);
  const OrtApiBase*(ORT_API_CALL * get_base)(void);
  find(library, "OrtGetApiBase", &get_base);
  const OrtApiBase* base = get_base();
  CHECK(sscanf(base->GetVersionString(), "1.%u", &minor) == 1);
  api = base->GetApi(minor < 30 ? minor : 30);
  CHECK(api != NULL);
  interop = api->GetInteropApi();
  CHECK(interop != NULL);
}

static void load_mock(const wchar_t* path) {
  HMODULE library = LoadLibraryW(path);
  CHECK(library != NULL);
  find(library, "mock_export_memory", &mock.export_memory);
  find(library, "mock_export_semaphore", &mock.export_semaphore);
  find(library, "mock_map", &mock.map);
  find(library, "mock_unmap", &mock.unmap);
  find(library, "mock_close", &mock.close);
  find(library, "mock_live", &mock.live);
  find(library, "mock_offence_count", &mock.offence_count);
  find(library, "mock_offence", &mock.offence);
}

static const OrtEpDevice* find_device(OrtEnv* env, const wchar_t* ep_name, const wchar_t* luid) {
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  OK(api->GetEpDevices(env, &devices, &count));
  for (size_t i = 0; i < count; ++i) {
    wchar_t text[128];
    (void)swprintf(text, 128, L"%hs", api->EpDevice_EpName(devices[i]));
    const char* found = api->GetKeyValue(api->EpDevice_EpMetadata(devices[i]), "LUID");
    if (wcscmp(text, ep_name) == 0) {
      CHECK(found != NULL);
      (void)swprintf(text, 128, L"%hs", found);
      /* The application takes the EP's device on its own adapter. */
      if (wcscmp(text, luid) == 0) {
        return devices[i];
      }
    }
  }
  CHECK(!"an EP device on the adapter");
  return NULL;
}

static void check_probes(OrtExternalResourceImporter* importer) {
  const struct {
    OrtExternalMemoryHandleType type;
    bool importable;
  } memory[] = {
      {ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE, true},
      {ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP, has_heaps},
      {ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_WIN32, has_heaps},
      {ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD, false},
      {(OrtExternalMemoryHandleType)99, false},
  };
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; ++i) {
    bool can = !memory[i].importable;
    OK(interop->CanImportMemory(importer, memory[i].type, &can));
    CHECK(can == memory[i].importable);
  }
  bool can = false;
  OK(interop->CanImportSemaphore(importer, ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE, &can));
  CHECK(can);
  OK(interop->CanImportSemaphore(importer, ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD,
                                 &can));
  CHECK(!can);
}

static OrtExternalMemoryHandle* import_memory(OrtExternalResourceImporter* importer,
                                              OrtExternalMemoryHandleType type, intptr_t handle,
                                              size_t offset) {
  const OrtExternalMemoryDescriptor descriptor = {.version = 24,
                                                  .handle_type = type,
                                                  .native_handle = (void*)handle,
                                                  .size_bytes = SIZE,
                                                  .offset_bytes = offset};
  OrtExternalMemoryHandle* memory = NULL;
  OK(interop->ImportMemory(importer, &descriptor, &memory));
  CHECK(memory != NULL);
  return memory;
}

static OrtValue* tensor_of(OrtExternalResourceImporter* importer,
                           const OrtExternalMemoryHandle* memory) {
  const int64_t shape[] = {FLOATS};
  const OrtExternalTensorDescriptor descriptor = {
      .version = 24,
      .element_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
      .shape = shape,
      .rank = 1};
  OrtValue* value = NULL;
  OK(interop->CreateTensorFromMemory(importer, memory, &descriptor, &value));
  CHECK(value != NULL);
  return value;
}

static Imports import_frame(const OrtEpDevice* device, const Frame* frame) {
  Imports imports = {0};
  OK(interop->CreateExternalResourceImporterForDevice(device, &imports.importer));
  CHECK(imports.importer != NULL);
  check_probes(imports.importer);
  /* A handle that is not one, and a null one. */
  const OrtExternalMemoryDescriptor nothing = {
      .version = 24,
      .handle_type = ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE,
      .size_bytes = SIZE};
  OrtExternalMemoryHandle* refused = NULL;
  OrtStatus* status = interop->ImportMemory(imports.importer, &nothing, &refused);
  CHECK(status != NULL && refused == NULL);
  CHECK(strstr(api->GetErrorMessage(status), "native_handle") != NULL);
  api->ReleaseStatus(status);
  imports.resource = import_memory(imports.importer, ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE,
                                   frame->resource, 0);
  imports.heap = import_memory(imports.importer,
                               has_heaps ? ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP
                                         : ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE,
                               frame->heap, OFFSET);
  const OrtExternalSemaphoreDescriptor fence = {.version = 24,
                                                .type = ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE,
                                                .native_handle = (void*)frame->fence};
  OK(interop->ImportSemaphore(imports.importer, &fence, &imports.fence));
  CHECK(imports.fence != NULL);
  imports.x = tensor_of(imports.importer, imports.resource);
  imports.y = tensor_of(imports.importer, imports.heap);
  OK(api->CreateSyncStreamForEpDevice(device, NULL, &imports.stream));
  return imports;
}

static void release_imports(Imports* imports) {
  api->ReleaseValue(imports->x);
  api->ReleaseValue(imports->y);
  interop->ReleaseExternalMemoryHandle(imports->resource);
  interop->ReleaseExternalMemoryHandle(imports->heap);
  interop->ReleaseExternalSemaphoreHandle(imports->fence);
  api->ReleaseSyncStream(imports->stream);
  interop->ReleaseExternalResourceImporter(imports->importer);
}

static OrtSession* open_session(OrtEnv* env, const OrtEpDevice* device, const wchar_t* model_path) {
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  OK(api->CreateSessionOptions(&options));
  OK(api->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, NULL, NULL, 0));
  OK(api->CreateSession(env, model_path, options, &session));
  api->ReleaseSessionOptions(options);
  const OrtEpDevice* output = NULL;
  OK(api->SessionGetEpDeviceForOutputs(session, &output, 1));
  CHECK(output == device);
  return session;
}

static void run(OrtSession* session, const OrtRunOptions* options, Imports* imports, bool bound) {
  if (!bound) {
    static const char* const input_names[] = {"input"};
    static const char* const output_names[] = {"output"};
    const OrtValue* inputs[] = {imports->x};
    OrtValue* outputs[] = {imports->y};
    OK(api->Run(session, options, input_names, inputs, 1, output_names, 1, outputs));
    CHECK(outputs[0] == imports->y);
    return;
  }
  OrtIoBinding* binding = NULL;
  OK(api->CreateIoBinding(session, &binding));
  OK(api->BindInput(binding, "input", imports->x));
  OK(api->BindOutput(binding, "output", imports->y));
  OK(api->RunWithBinding(session, options, binding));
  api->ReleaseIoBinding(binding);
}

/* The application renders into the resource, the session runs, the application reads the heap. The
 * session is queued first: nothing may move before the fence says so. */
static void frames(OrtSession* session, const Frame* frame, Imports* imports) {
  OrtRunOptions* options = NULL;
  OK(api->CreateRunOptions(&options));
  api->RunOptionsSetSyncStream(options, imports->stream);
  OK(api->AddRunConfigEntry(options, "disable_synchronize_execution_providers", "1"));
  const float* output = (const float*)((const char*)frame->heap_data + OFFSET);
  for (uint64_t round = 0; round < 20; ++round) {
    float before = output[3];
    OK(interop->WaitSemaphore(imports->importer, imports->fence, imports->stream, 2 * round + 1));
    run(session, options, imports, round % 2 == 1);
    OK(interop->SignalSemaphore(imports->importer, imports->fence, imports->stream, 2 * round + 2));
    Sleep(2);
    CHECK(output[3] == before && atomic_load(frame->fence_value) == 2 * round);
    for (int i = 0; i < FLOATS; ++i) {
      frame->resource_data[i] = (float)round * 100.0f + (float)i + 1.0f;
    }
    atomic_store(frame->fence_value, 2 * round + 1);
    for (int i = 0; i < 5000 && atomic_load(frame->fence_value) != 2 * round + 2; ++i) {
      Sleep(1);
    }
    CHECK(atomic_load(frame->fence_value) == 2 * round + 2);
    CHECK(memcmp(output, frame->resource_data, BYTES) == 0);
  }
  api->ReleaseRunOptions(options);
}

/* A copy to the host that waits for the fence, on a thread of its own. */
typedef struct ReadBack {
  OrtEnv* env;
  const Imports* imports;
  OrtValue* target;
  uint64_t value;
} ReadBack;

static DWORD WINAPI read_back(void* argument) {
  const ReadBack* work = argument;
  const Imports* imports = work->imports;
  const OrtValue* from[] = {imports->y};
  OrtValue* to[] = {work->target};
  OK(interop->WaitSemaphore(imports->importer, imports->fence, imports->stream, work->value));
  OK(api->CopyTensors(work->env, from, to, imports->stream, 1));
  OK(interop->SignalSemaphore(imports->importer, imports->fence, imports->stream, work->value + 1));
  return 0;
}

static DWORD WINAPI import_again(void* argument) {
  const Frame* frame = ((void**)argument)[0];
  const Imports* imports = ((void**)argument)[1];
  OrtExternalMemoryHandle* memory = import_memory(
      imports->importer, ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE, frame->resource, 0);
  interop->ReleaseExternalMemoryHandle(memory);
  return 0;
}

static HANDLE start(DWORD(WINAPI* work)(void*), void* argument) {
  HANDLE thread = CreateThread(NULL, 0, work, argument, 0, NULL);
  CHECK(thread != NULL);
  return thread;
}

static void join(HANDLE thread) {
  CHECK(WaitForSingleObject(thread, 5000) == WAIT_OBJECT_0);
  (void)CloseHandle(thread);
}

/* While a copy to the host waits, other calls on the device go on. */
static void copy_to_host(OrtEnv* env, Frame* frame, Imports* imports) {
  static float target[FLOATS];
  const int64_t shape[] = {FLOATS};
  OrtMemoryInfo* info = NULL;
  OrtValue* host = NULL;
  OK(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info));
  OK(api->CreateTensorWithDataAsOrtValue(info, target, sizeof target, shape, 1,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &host));
  api->ReleaseMemoryInfo(info);
  uint64_t before = atomic_load(frame->fence_value);
  ReadBack work = {.env = env, .imports = imports, .target = host, .value = before + 1};
  void* again[] = {frame, imports};
  HANDLE reader = start(read_back, &work);
  Sleep(20);
  join(start(import_again, again));
  CHECK(target[1] == 0.0f && atomic_load(frame->fence_value) == before);
  atomic_store(frame->fence_value, before + 1);
  join(reader);
  for (int i = 0; i < 5000 && atomic_load(frame->fence_value) != before + 2; ++i) {
    Sleep(1);
  }
  CHECK(atomic_load(frame->fence_value) == before + 2);
  CHECK(memcmp(target, (const char*)frame->heap_data + OFFSET, BYTES) == 0);
  api->ReleaseValue(host);
}

static void init_graphics(const OrtEpDevice* device) {
  static char queue; /* Stands for an ID3D12CommandQueue. */
  if (minor >= 25) {
    const OrtGraphicsInteropConfig config = {
        .version = 25, .graphics_api = ORT_GRAPHICS_API_D3D12, .command_queue = &queue};
    OK(interop->InitGraphicsInteropForEpDevice(device, &config));
  }
}

int wmain(int argc, wchar_t** argv);

int wmain(int argc, wchar_t** argv) {
  CHECK(argc == 7 || (argc == 8 && wcscmp(argv[7], L"--no-heaps") == 0));
  has_heaps = argc == 7;
  load_ort(argv[1]);
  load_mock(argv[4]);
  OrtEnv* env = NULL;
  OK(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "windows_d3d12", &env));
  wchar_t wide_path[MAX_PATH];
  CHECK(swprintf(wide_path, MAX_PATH, L"%ls.gr\x00f6\x00df.dll", argv[2]) > 0);
  CHECK(CopyFileW(argv[2], wide_path, FALSE));
  OK(api->RegisterExecutionProviderLibrary(env, "gpu", wide_path));
  const OrtEpDevice* device = find_device(env, argv[3], argv[5]);
  init_graphics(device);

  Frame frame = {.resource = mock.export_memory(SIZE),
                 .heap = mock.export_memory(SIZE),
                 .fence = mock.export_semaphore()};
  frame.resource_data = mock.map(frame.resource, SIZE);
  frame.heap_data = mock.map(frame.heap, SIZE);
  frame.fence_value = mock.map(frame.fence, sizeof *frame.fence_value);
  CHECK(frame.resource_data != NULL && frame.heap_data != NULL && frame.fence_value != NULL);

  OrtSession* session = open_session(env, device, argv[6]);
  Imports imports = import_frame(device, &frame);
  frames(session, &frame, &imports);
  copy_to_host(env, &frame, &imports);
  api->ReleaseSession(session);
  release_imports(&imports);
  if (minor >= 25) {
    OK(interop->DeinitGraphicsInteropForEpDevice(device));
  }
  OK(api->UnregisterExecutionProviderLibrary(env, "gpu"));
  api->ReleaseEnv(env);

  /* The application's handles are still its own. */
  mock.unmap(frame.resource_data, SIZE);
  frame.resource_data = mock.map(frame.resource, SIZE);
  CHECK(frame.resource_data != NULL && frame.resource_data[0] == 1901.0f);
  for (size_t i = 0; i < mock.offence_count(); ++i) {
    fprintf(stderr, "offence: %s\n", mock.offence(i));
  }
  CHECK(mock.offence_count() == 0);
  for (int i = 0; i < 2000 && mock.live(NULL) != 0; ++i) {
    Sleep(1);
  }
  CHECK(mock.live(NULL) == 0);
  mock.unmap(frame.resource_data, SIZE);
  mock.unmap(frame.heap_data, SIZE);
  mock.unmap((void*)(uintptr_t)frame.fence_value, sizeof *frame.fence_value);
  mock.close(frame.resource);
  mock.close(frame.heap);
  mock.close(frame.fence);
  CHECK(wine_exit_wait());
  puts("passed 20 frames");
  return 0;
}
