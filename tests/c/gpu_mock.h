/*
 * A client of a GPU's EP on a mock of its driver. Compile with EP_NAME_UNDER_TEST, with MOCK_FILE, the
 * mock's file name, which LD_LIBRARY_PATH leads to, and with MOCK_CONTEXTS, how many contexts the EP
 * holds for a device in use.
 */
#ifndef TESTS_C_GPU_MOCK_H_
#define TESTS_C_GPU_MOCK_H_

#include "client.h"

/** The control functions of the mock; mock.h says what they do. */
typedef struct Mock {
  size_t (*call_count)(void);
  const char* (*call)(size_t index);
  void (*forget_calls)(void);
  void (*set_recording)(bool on);
  void (*fail)(const char* function, unsigned nth, int result);
  const char* (*failed_function)(void);
  size_t (*live)(const char* kind);
  long (*context_balance)(void);
  size_t (*offence_count)(void);
  const char* (*offence)(size_t index);
  void (*set_option)(const char* name, long value);
  intptr_t (*export_memory)(size_t bytes);
  intptr_t (*export_semaphore)(void);
  void* (*map)(intptr_t exported, size_t bytes);
  void (*unmap)(void* mapped, size_t bytes);
  void (*close)(intptr_t exported);
} Mock;

/** Opens the mock. */
Mock mock_open(void);
/** Ends the program if the driver was used wrongly, or a context is still current. */
void mock_check(const Mock* mock);
/** Waits, for some seconds at most, until no object but `contexts` contexts is alive. */
void mock_settle(const Mock* mock, size_t contexts);

/** Waits, for a minute at most, until no import is alive. */
void mock_settle_imports(const Mock* mock);

/** The value of an exported semaphore, whose memory is at `mapped`. */
uint64_t semaphore_value(const void* mapped);
/** Signals it, as another API on the GPU would. */
void semaphore_set(void* mapped, uint64_t value);

/** An OrtSyncStream of the EP's device. */
OrtSyncStream* client_stream(const Client* client);

#endif /* TESTS_C_GPU_MOCK_H_ */
