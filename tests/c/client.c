#define _GNU_SOURCE
#include "client.h"

#include <dirent.h>
#include <dlfcn.h>
#include <time.h>

void client_ok(const Client* client, OrtStatus* status, const char* file, int line) {
  if (status != NULL) {
    fprintf(stderr, "%s:%d: status %d: %s\n", file, line, (int)client->api->GetErrorCode(status),
            client->api->GetErrorMessage(status));
    exit(1);
  }
}

void client_refused(const Client* client, OrtStatus* status, OrtErrorCode code, const char* text,
                    int line) {
  if (status == NULL) {
    fprintf(stderr, "line %d: success where an error with '%s' was due\n", line, text);
    exit(1);
  }
  const char* message = client->api->GetErrorMessage(status);
  if (client->api->GetErrorCode(status) != code || strstr(message, text) == NULL) {
    fprintf(stderr, "line %d: got %d '%s', expected %d with '%s'\n", line,
            (int)client->api->GetErrorCode(status), message, (int)code, text);
    exit(1);
  }
  client->api->ReleaseStatus(status);
}

void client_load(Client* client, const char* ort_path) {
  memset(client, 0, sizeof *client);
  void* library = dlopen(ort_path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  const OrtApiBase* (*get_base)(void);
  *(void**)&get_base = dlsym(library, "OrtGetApiBase");
  CHECK(get_base != NULL);
  const OrtApiBase* base = get_base();
  CHECK(sscanf(base->GetVersionString(), "1.%u", &client->minor) == 1);
  client->api = base->GetApi(client->minor < 24 ? client->minor : 24);
  CHECK(client->api != NULL);
  OK(client, client->api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "test", &client->env));
}

void client_open(Client* client, const char* ort_path, const char* ep_path) {
  client_load(client, ort_path);
  const OrtApi* api = client->api;
  client->interop = api->GetInteropApi();
  CHECK(client->interop != NULL);
  OK(client, api->RegisterExecutionProviderLibrary(client->env, "host_interop", ep_path));
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  OK(client, api->GetEpDevices(client->env, &devices, &count));
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(api->EpDevice_EpName(devices[i]), EP_NAME_UNDER_TEST) == 0) {
      CHECK(client->device == NULL);
      client->device = devices[i];
    }
  }
  CHECK(client->device != NULL);
}

void client_close(Client* client) {
  if (client->device != NULL) {
    OK(client, client->api->UnregisterExecutionProviderLibrary(client->env, "host_interop"));
  }
  client->api->ReleaseEnv(client->env);
}

/* A protobuf message being written. */
typedef struct Message {
  char bytes[1024];
  size_t size;
} Message;

static void put_varint(Message* message, uint64_t value) {
  do {
    CHECK(message->size < sizeof message->bytes);
    message->bytes[message->size++] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>= 7;
  } while (value != 0);
}

static void put_number(Message* message, unsigned field, uint64_t value) {
  put_varint(message, field << 3);
  put_varint(message, value);
}

static void put_bytes(Message* message, unsigned field, const void* bytes, size_t size) {
  put_varint(message, field << 3 | 2);
  put_varint(message, size);
  CHECK(size <= sizeof message->bytes - message->size);
  memcpy(message->bytes + message->size, bytes, size);
  message->size += size;
}

static void put_text(Message* message, unsigned field, const char* text) {
  put_bytes(message, field, text, strlen(text));
}

static void put_message(Message* message, unsigned field, const Message* child) {
  put_bytes(message, field, child->bytes, child->size);
}

static void put_value_info(Message* graph, unsigned field, const char* name, int onnx_type,
                           const int64_t* shape, size_t rank) {
  Message dims = {.size = 0};
  for (size_t i = 0; i < rank; ++i) {
    Message dim = {.size = 0};
    put_number(&dim, 1, (uint64_t)shape[i]);
    put_message(&dims, 1, &dim);
  }
  Message tensor = {.size = 0};
  put_number(&tensor, 1, (uint64_t)onnx_type);
  put_message(&tensor, 2, &dims);
  Message type = {.size = 0};
  put_message(&type, 1, &tensor);
  Message info = {.size = 0};
  put_text(&info, 1, name);
  put_message(&info, 2, &type);
  put_message(graph, field, &info);
}

size_t client_model(char* bytes, const char* const* operators, size_t count, int onnx_type,
                    const int64_t* shape, size_t rank) {
  Message graph = {.size = 0};
  for (size_t i = 0; i < count; ++i) {
    char from[24];
    char to[24];
    (void)snprintf(from, sizeof from, "t%zu", i);
    (void)snprintf(to, sizeof to, "t%zu", i + 1);
    Message node = {.size = 0};
    put_text(&node, 1, i == 0 ? "X" : from);
    put_text(&node, 2, i + 1 == count ? "Y" : to);
    put_text(&node, 3, to);
    put_text(&node, 4, operators[i]);
    put_message(&graph, 1, &node);
  }
  put_text(&graph, 2, "chain");
  put_value_info(&graph, 11, "X", onnx_type, shape, rank);
  put_value_info(&graph, 12, "Y", onnx_type, shape, rank);
  Message opset = {.size = 0};
  put_text(&opset, 1, "");
  put_number(&opset, 2, onnx_type > 22 ? 23 : onnx_type > 16 ? 21 : 19);
  Message model = {.size = 0};
  put_number(&model, 1, onnx_type > 22 ? 11 : onnx_type > 16 ? 10 : 9);
  put_message(&model, 7, &graph);
  put_message(&model, 8, &opset);
  memcpy(bytes, model.bytes, model.size);
  return model.size;
}

OrtSession* client_session(const Client* client, const char* const* operators, size_t count,
                           int onnx_type, const int64_t* shape, size_t rank) {
  const OrtApi* api = client->api;
  char bytes[1024];
  size_t size = client_model(bytes, operators, count, onnx_type, shape, rank);
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  OK(client, api->CreateSessionOptions(&options));
  OK(client, api->SetSessionGraphOptimizationLevel(options, ORT_DISABLE_ALL));
  OK(client, api->SetIntraOpNumThreads(options, 1));
  OK(client, api->SessionOptionsAppendExecutionProvider_V2(options, client->env, &client->device, 1,
                                                           NULL, NULL, 0));
  OK(client, api->CreateSessionFromArray(client->env, bytes, size, options, &session));
  api->ReleaseSessionOptions(options);
  return session;
}

OrtRunOptions* client_run_options(const Client* client, OrtSyncStream* stream, bool synchronize) {
  OrtRunOptions* options = NULL;
  OK(client, client->api->CreateRunOptions(&options));
  if (stream != NULL) {
    client->api->RunOptionsSetSyncStream(options, stream);
  }
  if (!synchronize) {
    OK(client,
       client->api->AddRunConfigEntry(options, "disable_synchronize_execution_providers", "1"));
  }
  return options;
}

void client_run(const Client* client, OrtSession* session, const OrtRunOptions* options,
                const OrtValue* x, OrtValue** y) {
  static const char* const input_names[] = {"X"};
  static const char* const output_names[] = {"Y"};
  OK(client, client->api->Run(session, options, input_names, &x, 1, output_names, 1, y));
}

OrtExternalMemoryHandle* client_import(const Client* client, OrtExternalResourceImporter* importer,
                                       int fd, size_t size, size_t offset) {
  OrtExternalMemoryDescriptor descriptor = {
      .version = 24,
      .handle_type = (OrtExternalMemoryHandleType)ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD,
      .native_handle = (void*)(intptr_t)fd,
      .size_bytes = size,
      .offset_bytes = offset,
  };
  OrtExternalMemoryHandle* handle = NULL;
  OK(client, client->interop->ImportMemory(importer, &descriptor, &handle));
  CHECK(handle != NULL);
  return handle;
}

OrtExternalSemaphoreHandle* client_import_semaphore(const Client* client,
                                                    OrtExternalResourceImporter* importer, int fd) {
  OrtExternalSemaphoreDescriptor descriptor = {
      .version = 24,
      .type = ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD,
      .native_handle = (void*)(intptr_t)fd,
  };
  OrtExternalSemaphoreHandle* handle = NULL;
  OK(client, client->interop->ImportSemaphore(importer, &descriptor, &handle));
  CHECK(handle != NULL);
  return handle;
}

OrtValue* client_tensor(const Client* client, OrtExternalResourceImporter* importer,
                        const OrtExternalMemoryHandle* memory, ONNXTensorElementDataType type,
                        const int64_t* shape, size_t rank, size_t offset) {
  OrtExternalTensorDescriptor descriptor = {
      .version = 24, .element_type = type, .shape = shape, .rank = rank, .offset_bytes = offset};
  OrtValue* tensor = NULL;
  OK(client, client->interop->CreateTensorFromMemory(importer, memory, &descriptor, &tensor));
  CHECK(tensor != NULL);
  return tensor;
}

size_t client_open_fds(void) {
  DIR* folder = opendir("/proc/self/fd");
  CHECK(folder != NULL);
  size_t count = 0;
  while (readdir(folder) != NULL) {
    ++count;
  }
  closedir(folder);
  return count;
}

double client_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

void client_sleep_ms(unsigned ms) {
  struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}
