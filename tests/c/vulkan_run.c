/*
 * Sessions of the vulkan EP in a real ONNX Runtime, on memory that another process exports.
 *
 * vulkan_run ORT_LIBRARY EP_LIBRARY     runs every test
 * vulkan_run --lend ORT_LIBRARY EP_LIBRARY   lends the EP the application's own VkDevice
 * vulkan_run --export SOCKET            is the exporter
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdatomic.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "vulkan_exporter.h"
#include "graphics_options.h"

#define HALF ((size_t)65536)
#define COUNT ((int64_t)(HALF / 4))
#define TURNS 30

extern char** environ;

static const int64_t SHAPE[] = {COUNT};
static const char* const IDENTITY[] = {"Identity"};

/* What the exporter is asked to do; it answers with a Reply. */
typedef struct Order {
  char what; /* 'f': fill the first half with `word`; 'c': is the second half `word`?; 'q': end */
  uint32_t word;
} Order;

typedef struct Reply {
  uint64_t size;
  bool good;
} Reply;

static void send_fd(int socket, int fd, Reply reply) {
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec data = {&reply, sizeof reply};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  CHECK(sendmsg(socket, &message, 0) == sizeof reply);
}

static int receive_fd(int socket, Reply* reply) {
  int fd = -1;
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec data = {reply, sizeof *reply};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  CHECK(recvmsg(socket, &message, 0) == sizeof *reply);
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  CHECK(header != NULL);
  memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

static int export_memory(int socket) {
  Exporter exporter;
  exporter_open(&exporter, 2 * HALF);
  int fd = exporter_fd(&exporter);
  send_fd(socket, fd, (Reply){exporter.size, true});
  close(fd);
  Order order;
  while (read(socket, &order, sizeof order) == sizeof order && order.what != 'q') {
    Reply reply = {exporter.size, true};
    if (order.what == 'f') {
      exporter_fill(&exporter, 0, HALF, order.word);
    } else {
      const uint32_t* words = (const uint32_t*)((const char*)exporter.mapped + HALF);
      for (int64_t i = 0; i < COUNT; ++i) {
        reply.good = reply.good && words[i] == order.word;
      }
    }
    CHECK(write(socket, &reply, sizeof reply) == sizeof reply);
  }
  exporter_close(&exporter);
  return 0;
}

/* A client with the exporter's memory imported. */
typedef struct Rig {
  Client client;
  OrtExternalResourceImporter* importer;
  int socket;
  pid_t child;
  size_t size;
  int fd;
  OrtExternalMemoryHandle* memory;
  OrtValue* x;
  OrtValue* y;
  OrtSession* session;
  OrtSyncStream* stream;
  size_t fds;
} Rig;

static bool ask(const Rig* rig, char what, uint32_t word) {
  Order order = {what, word};
  Reply reply;
  CHECK(write(rig->socket, &order, sizeof order) == sizeof order);
  CHECK(read(rig->socket, &reply, sizeof reply) == sizeof reply);
  return reply.good;
}

static void start_exporter(Rig* rig) {
  int sockets[2];
  CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
  int theirs = dup(sockets[1]);
  close(sockets[1]);
  char program[] = "vulkan_run";
  char mode[] = "--export";
  char number[16];
  (void)snprintf(number, sizeof number, "%d", theirs);
  char* arguments[] = {program, mode, number, NULL};
  CHECK(posix_spawn(&rig->child, "/proc/self/exe", NULL, NULL, arguments, environ) == 0);
  close(theirs);
  rig->socket = sockets[0];
  Reply reply;
  rig->fd = receive_fd(rig->socket, &reply);
  rig->size = reply.size;
}

static void rig_open(Rig* rig, const char* ort_path, const char* ep_path) {
  client_open(&rig->client, ort_path, ep_path);
  const Client* client = &rig->client;
  start_exporter(rig);
  OK(client,
     client->interop->CreateExternalResourceImporterForDevice(client->device, &rig->importer));
  CHECK(rig->importer != NULL);
  rig->memory = client_import(client, rig->importer, rig->fd, rig->size, 0);
  rig->x = client_tensor(client, rig->importer, rig->memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                         SHAPE, 1, 0);
  rig->y = client_tensor(client, rig->importer, rig->memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                         SHAPE, 1, HALF);
  OK(client, client->api->CreateSyncStreamForEpDevice(client->device, NULL, &rig->stream));
  rig->session = client_session(client, IDENTITY, 1, 1, SHAPE, 1);
}

static void rig_close(Rig* rig) {
  const Client* client = &rig->client;
  client->api->ReleaseSession(rig->session);
  client->interop->ReleaseExternalMemoryHandle(rig->memory);
  client->interop->ReleaseExternalResourceImporter(rig->importer);
  client->api->ReleaseValue(rig->x);
  client->api->ReleaseValue(rig->y);
  client->api->ReleaseSyncStream(rig->stream);
  client_close(&rig->client);
  Order end = {'q', 0};
  CHECK(write(rig->socket, &end, sizeof end) == sizeof end);
  int status = 0;
  CHECK(waitpid(rig->child, &status, 0) == rig->child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  close(rig->socket);
  close(rig->fd);
}

/* The exporter writes with its device, the session runs, the exporter reads its own mapping. */
static void test_zero_copy(Rig* rig) {
  const Client* client = &rig->client;
  void* x = NULL;
  void* y = NULL;
  OK(client, client->api->GetTensorMutableData(rig->x, &x));
  OK(client, client->api->GetTensorMutableData(rig->y, &y));
  CHECK((char*)y - (char*)x == (ptrdiff_t)HALF);
  OrtAllocator* allocator = NULL;
  const OrtMemoryInfo* info = NULL;
  OK(client, client->api->GetTensorMemoryInfo(rig->x, &info));
  OK(client, client->api->CreateAllocator(rig->session, info, &allocator));
  OrtRunOptions* options = client_run_options(client, rig->stream, true);
  for (uint32_t round = 1; round <= 5; ++round) {
    uint32_t word = 0x3f800000u + round;
    CHECK(!ask(rig, 'c', word));
    CHECK(ask(rig, 'f', word));
    OrtValue* before = rig->y;
    client_run(client, rig->session, round % 2 == 0 ? options : NULL, rig->x, &rig->y);
    CHECK(rig->y == before);
    CHECK(ask(rig, 'c', word));
  }
  OrtKeyValuePairs* stats = NULL;
  OK(client, client->api->AllocatorGetStats(allocator, &stats));
  const char* allocations = client->api->GetKeyValue(stats, "NumAllocs");
  /* Older releases do not hand the statistics of a session's allocator through. */
  CHECK(allocations == NULL || strcmp(allocations, "0") == 0);
  printf("allocations by sessions: %s\n", allocations == NULL ? "not told" : allocations);
  client->api->ReleaseKeyValuePairs(stats);
  client->api->ReleaseAllocator(allocator);
  client->api->ReleaseRunOptions(options);
}

static void test_io_binding(Rig* rig) {
  const Client* client = &rig->client;
  const OrtApi* api = client->api;
  OrtIoBinding* binding = NULL;
  OK(client, api->CreateIoBinding(rig->session, &binding));
  OK(client, api->BindInput(binding, "X", rig->x));
  OK(client, api->BindOutput(binding, "Y", rig->y));
  CHECK(ask(rig, 'f', 77));
  OK(client, api->RunWithBinding(rig->session, NULL, binding));
  CHECK(ask(rig, 'c', 77));
  api->ReleaseIoBinding(binding);
}

/* lavapipe has timelines and exports binary semaphores, but imports no timeline by descriptor. */
static void test_probes(Rig* rig) {
  const Client* client = &rig->client;
  bool can = false;
  OK(client, client->interop->CanImportMemory(rig->importer, (OrtExternalMemoryHandleType)3, &can));
  CHECK(can);
  for (int type = 0; type < 8; ++type) {
    if (type == 3 || (type == 4 && client->minor >= 30)) {
      continue;
    }
    OK(client,
       client->interop->CanImportMemory(rig->importer, (OrtExternalMemoryHandleType)type, &can));
    CHECK(!can);
  }
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  Exporter exporter;
  exporter_open(&exporter, 0);
  physical = exporter.physical;
  VkSemaphoreTypeCreateInfo timeline = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  VkPhysicalDeviceExternalSemaphoreInfo info = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
      .pNext = &timeline,
      .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
  VkExternalSemaphoreProperties properties = {.sType =
                                                  VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES};
  vkGetPhysicalDeviceExternalSemaphoreProperties(physical, &info, &properties);
  bool importable =
      (properties.externalSemaphoreFeatures & VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT) != 0;
  OK(client, client->interop->CanImportSemaphore(
                 rig->importer, ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD, &can));
  CHECK(can == importable);
  printf("timeline by fd: %s\n", can ? "importable" : "not importable");
  exporter_close(&exporter);
  if (!can) {
    OrtExternalSemaphoreDescriptor descriptor = {
        .version = 24,
        .type = ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD,
        .native_handle = (void*)(intptr_t)rig->fd};
    OrtExternalSemaphoreHandle* handle = NULL;
    REFUSED(client, client->interop->ImportSemaphore(rig->importer, &descriptor, &handle),
            ORT_NOT_IMPLEMENTED, "type");
  }
}

static OrtValue* cpu_tensor(const Client* client, float* data, size_t count) {
  OrtMemoryInfo* cpu = NULL;
  OrtValue* value = NULL;
  const int64_t shape[] = {(int64_t)count};
  OK(client, client->api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
  OK(client,
     client->api->CreateTensorWithDataAsOrtValue(cpu, data, count * sizeof *data, shape, 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  client->api->ReleaseMemoryInfo(cpu);
  return value;
}

/* Synchronous copies, and copies on a stream both ways. */
static void test_copies(Rig* rig) {
  const Client* client = &rig->client;
  const OrtApi* api = client->api;
  float* in = malloc(HALF);
  float* out = calloc(1, HALF);
  CHECK(in != NULL && out != NULL);
  for (int64_t i = 0; i < COUNT; ++i) {
    in[i] = (float)i;
  }
  OrtValue* source = cpu_tensor(client, in, (size_t)COUNT);
  OrtValue* target = cpu_tensor(client, out, (size_t)COUNT);
  for (int round = 0; round < 40; ++round) {
    OrtSyncStream* stream = round % 2 == 0 ? NULL : rig->stream;
    in[0] = (float)-round;
    const OrtValue* to_device[] = {source};
    OrtValue* device[] = {rig->x};
    const OrtValue* between[] = {rig->x};
    OrtValue* other[] = {rig->y};
    const OrtValue* from_device[] = {rig->y};
    OrtValue* host[] = {target};
    OK(client, api->CopyTensors(client->env, to_device, device, stream, 1));
    in[0] = 12345.0f; /* The source may change at once. */
    OK(client, api->CopyTensors(client->env, between, other, stream, 1));
    OK(client, api->CopyTensors(client->env, from_device, host, stream, 1));
    if (stream != NULL) {
      client_sleep_ms(0);
      OrtRunOptions* options = client_run_options(client, stream, true);
      client_run(client, rig->session, options, rig->x, &rig->y); /* Flushes the stream. */
      api->ReleaseRunOptions(options);
    }
    CHECK(out[0] == (float)-round && out[COUNT - 1] == (float)(COUNT - 1));
  }
  api->ReleaseValue(source);
  api->ReleaseValue(target);
  free(in);
  free(out);
}

static OrtSyncStreamImpl* stream_impl(const Client* client, const OrtSyncStream* stream) {
  return (OrtSyncStreamImpl*)client->api->GetEpApi()->SyncStream_GetImpl(stream);
}

/* Enqueues that `consumer` goes on where `producer` is now. */
static void follow(const Client* client, OrtSyncStream* producer, OrtSyncStream* consumer) {
  OrtSyncStreamImpl* impl = stream_impl(client, producer);
  OrtSyncNotificationImpl* event = NULL;
  OK(client, impl->CreateNotification(impl, &event));
  OK(client, event->Activate(event));
  OK(client, event->WaitOnDevice(event, consumer));
  event->Release(event);
}

/* Two streams take turns with one tensor, all enqueued at once; on one queue, where it is the host
 * that brings what is read on one stream before the other may go on. */
static void test_turns(Rig* rig) {
  const Client* client = &rig->client;
  const OrtApi* api = client->api;
  static float outs[2 * TURNS][16];
  float in[16] = {0};
  OrtSyncStream* streams[] = {rig->stream, NULL};
  OK(client, api->CreateSyncStreamForEpDevice(client->device, NULL, &streams[1]));
  OrtValue* source = cpu_tensor(client, in, 16);
  OrtValue* device =
      client_tensor(client, rig->importer, rig->memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                    (const int64_t[]){16}, 1, 0);
  const OrtValue* from_host = source;
  const OrtValue* from_device = device;
  for (int turn = 0; turn < 2 * TURNS; ++turn) {
    OrtSyncStream* stream = streams[turn % 2];
    OrtValue* target = cpu_tensor(client, outs[turn], 16);
    in[15] = (float)(turn + 1);
    OK(client, api->CopyTensors(client->env, &from_host, &device, stream, 1));
    OK(client, api->CopyTensors(client->env, &from_device, &target, stream, 1));
    follow(client, stream, streams[1 - turn % 2]);
    api->ReleaseValue(target);
  }
  for (int i = 0; i < 2; ++i) {
    OrtSyncStreamImpl* impl = stream_impl(client, streams[i]);
    OK(client, impl->Flush(impl));
  }
  for (int turn = 0; turn < 2 * TURNS; ++turn) {
    CHECK(outs[turn][0] == 0.0f && outs[turn][15] == (float)(turn + 1));
  }
  api->ReleaseValue(source);
  api->ReleaseValue(device);
  api->ReleaseSyncStream(streams[1]);
}

static void test_beside_cpu_nodes(Rig* rig) {
  const Client* client = &rig->client;
  static const char* const operators[] = {"Identity", "Neg", "Identity", "Abs", "Identity"};
  OrtSession* session = client_session(client, operators, 5, 1, SHAPE, 1);
  for (uint32_t round = 0; round < 10; ++round) {
    CHECK(ask(rig, 'f', 0xbf800000u + round));
    client_run(client, session, NULL, rig->x, &rig->y);
    CHECK(ask(rig, 'c', 0x3f800000u + round));
  }
  client->api->ReleaseSession(session);
}

static void test_refused_memory(Rig* rig) {
  const Client* client = &rig->client;
  OrtExternalMemoryDescriptor descriptor = {
      .version = 24,
      .handle_type = (OrtExternalMemoryHandleType)ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD,
      .native_handle = (void*)(intptr_t)rig->fd,
      .size_bytes = HALF};
  OrtExternalMemoryHandle* handle = NULL;
  int zero = memfd_create("nothing of Vulkan's", MFD_CLOEXEC);
  CHECK(zero >= 0);
  descriptor.native_handle = (void*)(intptr_t)zero;
  OrtStatus* status = client->interop->ImportMemory(rig->importer, &descriptor, &handle);
  CHECK(status != NULL && handle == NULL);
  client->api->ReleaseStatus(status);
  CHECK(close(zero) == 0);
}

/* Descriptors and processes' memory are balanced over many imports. */
static void test_cycles(Rig* rig) {
  const Client* client = &rig->client;
  size_t fds = client_open_fds();
  for (int i = 0; i < 500; ++i) {
    OrtExternalMemoryHandle* memory =
        client_import(client, rig->importer, rig->fd, rig->size, (size_t)(i % 8) * 4096);
    OrtValue* tensor =
        client_tensor(client, rig->importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                      (const int64_t[]){16}, 1, 64);
    client->interop->ReleaseExternalMemoryHandle(memory);
    client->api->ReleaseValue(tensor);
  }
  CHECK(client_open_fds() == fds);
}

static void test_host_allocation(Rig* rig) {
  const Client* client = &rig->client;
  if (client->minor < 30) {
    return;
  }
  float* pages = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED);
  OrtExternalMemoryDescriptor descriptor = {
      .version = 24,
      .handle_type = (OrtExternalMemoryHandleType)ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION,
      .native_handle = pages,
      .size_bytes = 2 * HALF};
  OrtExternalMemoryHandle* memory = NULL;
  OK(client, client->interop->ImportMemory(rig->importer, &descriptor, &memory));
  OrtValue* x = client_tensor(client, rig->importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                              SHAPE, 1, 0);
  OrtValue* y = client_tensor(client, rig->importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                              SHAPE, 1, HALF);
  pages[3] = 42.0f;
  client_run(client, rig->session, NULL, x, &y);
  CHECK(pages[COUNT + 3] == 42.0f);
  client->api->ReleaseValue(x);
  client->api->ReleaseValue(y);
  client->interop->ReleaseExternalMemoryHandle(memory);
  munmap(pages, 2 * HALF);
}

/* The options that lend `exporter`'s device; the caller releases them. */
static OrtKeyValuePairs* lending(const OrtApi* api, const Exporter* exporter) {
  const struct {
    const char* key;
    uintptr_t value;
  } options[] = {
      {VULKAN_OPTION_GET_INSTANCE_PROC_ADDR, (uintptr_t)vkGetInstanceProcAddr},
      {VULKAN_OPTION_INSTANCE, (uintptr_t)exporter->instance},
      {VULKAN_OPTION_PHYSICAL_DEVICE, (uintptr_t)exporter->physical},
      {VULKAN_OPTION_DEVICE, (uintptr_t)exporter->device},
      {VULKAN_OPTION_QUEUE_FAMILY_INDEX, 0},
      {VULKAN_OPTION_QUEUE_INDEX, 0},
      {VULKAN_OPTION_BUFFER_DEVICE_ADDRESS, 1},
  };
  OrtKeyValuePairs* pairs = NULL;
  api->CreateKeyValuePairs(&pairs);
  for (size_t i = 0; i < sizeof options / sizeof options[0]; ++i) {
    char text[32];
    (void)snprintf(text, sizeof text, i % 2 == 0 ? "0x%jx" : "%ju", (uintmax_t)options[i].value);
    api->AddKeyValuePair(pairs, options[i].key, text);
  }
  return pairs;
}

static void refuse_options(const Client* client, OrtGraphicsInteropConfig config,
                           OrtKeyValuePairs* options, const char* key, const char* value,
                           const char* text) {
  const char* good = client->api->GetKeyValue(options, key);
  char kept[32];
  (void)snprintf(kept, sizeof kept, "%s", good);
  if (value == NULL) {
    client->api->RemoveKeyValuePair(options, key);
  } else {
    client->api->AddKeyValuePair(options, key, value);
  }
  config.additional_options = options;
  REFUSED(client, client->interop->InitGraphicsInteropForEpDevice(client->device, &config),
          ORT_INVALID_ARGUMENT, text);
  client->api->AddKeyValuePair(options, key, kept);
}

static void test_refused_loans(const Client* client, OrtGraphicsInteropConfig config,
                               OrtKeyValuePairs* options) {
  refuse_options(client, config, options, VULKAN_OPTION_DEVICE, NULL, "vulkan_device is missing");
  refuse_options(client, config, options, VULKAN_OPTION_DEVICE, "0", "vulkan_device is null");
  refuse_options(client, config, options, VULKAN_OPTION_INSTANCE, "-1", "is '-1', not a number");
  refuse_options(client, config, options, VULKAN_OPTION_INSTANCE, "", "is '', not a number");
  refuse_options(client, config, options, VULKAN_OPTION_QUEUE_INDEX, "0x1ffffffff", "not a number");
  refuse_options(client, config, options, VULKAN_OPTION_BUFFER_DEVICE_ADDRESS, "2", "up to 1");
  config.graphics_api = ORT_GRAPHICS_API_NONE;
  config.additional_options = options;
  REFUSED(client, client->interop->InitGraphicsInteropForEpDevice(client->device, &config),
          ORT_NOT_IMPLEMENTED, "graphics_api is 0");
}

/* Memory of the lent device itself is imported, used in place, and read by its owner. */
static void run_on_loan(const Client* client, const Exporter* exporter) {
  const OrtInteropApi* interop = client->interop;
  OrtExternalResourceImporter* importer = NULL;
  OK(client, interop->CreateExternalResourceImporterForDevice(client->device, &importer));
  int fd = exporter_fd(exporter);
  OrtExternalMemoryHandle* memory = client_import(client, importer, fd, exporter->size, 0);
  OrtValue* x =
      client_tensor(client, importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, SHAPE, 1, 0);
  OrtValue* y =
      client_tensor(client, importer, memory, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, SHAPE, 1, HALF);
  OrtSession* session = client_session(client, IDENTITY, 1, 1, SHAPE, 1);
  REFUSED(client, interop->DeinitGraphicsInteropForEpDevice(client->device), ORT_FAIL,
          "still has memory");
  for (uint32_t word = 1; word < 4; ++word) {
    exporter_fill(exporter, 0, HALF, word);
    client_run(client, session, NULL, x, &y);
    const uint32_t* words = (const uint32_t*)((const char*)exporter->mapped + HALF);
    CHECK(words[0] == word && words[COUNT - 1] == word);
  }
  client->api->ReleaseSession(session);
  client->api->ReleaseValue(x);
  client->api->ReleaseValue(y);
  interop->ReleaseExternalMemoryHandle(memory);
  interop->ReleaseExternalResourceImporter(importer);
  close(fd);
}

static int lend_device(const char* ort_path, const char* ep_path) {
  static Client client;
  client_open(&client, ort_path, ep_path);
  Exporter exporter;
  exporter_open(&exporter, 2 * HALF);
  OrtKeyValuePairs* options = lending(client.api, &exporter);
  OrtGraphicsInteropConfig config = {.version = 25, .graphics_api = ORT_GRAPHICS_API_VULKAN};
  OK(&client, client.interop->InitGraphicsInteropForEpDevice(client.device, &config));
  test_refused_loans(&client, config, options);
  config.additional_options = options;
  /* Lent, given back, and lent again; the EP's own device serves in between. */
  for (int round = 0; round < 2; ++round) {
    OK(&client, client.interop->InitGraphicsInteropForEpDevice(client.device, &config));
    run_on_loan(&client, &exporter);
    OK(&client, client.interop->DeinitGraphicsInteropForEpDevice(client.device));
    run_on_loan(&client, &exporter);
  }
  client.api->ReleaseKeyValuePairs(options);
  client_close(&client);
  exporter_close(&exporter);
  puts("passed loan");
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "--export") == 0) {
    return export_memory(atoi(argv[2]));
  }
  if (argc == 4 && strcmp(argv[1], "--lend") == 0) {
    return lend_device(argv[2], argv[3]);
  }
  CHECK(argc == 3);
  static const struct {
    const char* name;
    void (*run)(Rig*);
  } tests[] = {
      {"probes", test_probes},
      {"zero_copy", test_zero_copy},
      {"io_binding", test_io_binding},
      {"copies", test_copies},
      {"turns", test_turns},
      {"beside_cpu_nodes", test_beside_cpu_nodes},
      {"refused_memory", test_refused_memory},
      {"cycles", test_cycles},
      {"host_allocation", test_host_allocation},
  };
  static Rig rig;
  rig_open(&rig, argv[1], argv[2]);
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
    tests[i].run(&rig);
    printf("ok %s\n", tests[i].name);
    fflush(stdout);
  }
  rig_close(&rig);
  printf("passed %zu\n", sizeof tests / sizeof tests[0]);
  return 0;
}
