/*
 * What the test programs share: a loaded ONNX Runtime with the EP registered in it, models without
 * files, and checks that end the program with a message.
 */
#ifndef TESTS_C_CLIENT_H_
#define TESTS_C_CLIENT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_interop.h"
#include "ort_interop_abi.h"

#ifndef EP_NAME_UNDER_TEST
#ifndef EP_NAME_UNDER_TEST
#define EP_NAME_UNDER_TEST "HostInteropExecutionProvider"
#endif
#endif

/** Ends the program when `condition` does not hold. */
#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

/** Ends the program when the call that returned `status` failed. */
#define OK(client, status) client_ok((client), (status), __FILE__, __LINE__)

/** Everything that a test needs of ONNX Runtime. */
typedef struct Client {
  const OrtApi* api;
  const OrtInteropApi* interop;
  unsigned minor; /**< Of the loaded ONNX Runtime. */
  OrtEnv* env;
  const OrtEpDevice* device;
} Client;

/** Loads ONNX Runtime from `ort_path` and negotiates an API version. */
void client_load(Client* client, const char* ort_path);
/** client_load(), then registers the EP library `ep_path` and finds its device. */
void client_open(Client* client, const char* ort_path, const char* ep_path);
/** Unregisters the EP and ends the environment. */
void client_close(Client* client);

void client_ok(const Client* client, OrtStatus* status, const char* file, int line);
/** Expects that `status` is an error of `code` whose message contains `text`; releases it. */
void client_refused(const Client* client, OrtStatus* status, OrtErrorCode code, const char* text,
                    int line);
#define REFUSED(client, status, code, text) \
  client_refused((client), (status), (code), (text), __LINE__)

/** A model whose nodes, `operators[0..count)`, form a chain from input X to output Y. */
size_t client_model(char* bytes, const char* const* operators, size_t count, int onnx_type,
                    const int64_t* shape, size_t rank);

/** A session of such a model on the EP's device, without graph optimisations. */
OrtSession* client_session(const Client* client, const char* const* operators, size_t count,
                           int onnx_type, const int64_t* shape, size_t rank);

/** Run options that use `stream` (null for none), and wait for the work if `synchronize`. */
OrtRunOptions* client_run_options(const Client* client, OrtSyncStream* stream, bool synchronize);

/** Runs X -> Y. */
void client_run(const Client* client, OrtSession* session, const OrtRunOptions* options,
                const OrtValue* x, OrtValue** y);

/** Imports the memfd `fd`. */
OrtExternalMemoryHandle* client_import(const Client* client, OrtExternalResourceImporter* importer,
                                       int fd, size_t size, size_t offset);
/** Imports the semaphore memfd `fd`. */
OrtExternalSemaphoreHandle* client_import_semaphore(const Client* client,
                                                    OrtExternalResourceImporter* importer, int fd);
/** A tensor in imported memory. */
OrtValue* client_tensor(const Client* client, OrtExternalResourceImporter* importer,
                        const OrtExternalMemoryHandle* memory, ONNXTensorElementDataType type,
                        const int64_t* shape, size_t rank, size_t offset);

/** How many file descriptors the process has open. */
size_t client_open_fds(void);
/** Milliseconds of a clock that does not go back. */
double client_now_ms(void);
/** Sleeps. */
void client_sleep_ms(unsigned ms);

#endif /* TESTS_C_CLIENT_H_ */
