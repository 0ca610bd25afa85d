/* How the simulation and the generated entry points record what happens. */
#ifndef MOCK_RECORD_H_
#define MOCK_RECORD_H_

#include "mock.h"

#define MOCK_CALL_CAPACITY 1024

/** A call under way. */
typedef struct MockCall {
  const char* function;
  size_t length;
  char text[MOCK_CALL_CAPACITY];
} MockCall;

/** Starts the record of a call. */
void mock_begin(MockCall* call, const char* function);
/** Adds an argument. */
void mock_argument_signed(MockCall* call, const char* name, long long value);
/** Adds an argument or field that is an address or a handle. */
void mock_argument_address(MockCall* call, const char* name, uint64_t value);
/** Whether the call is to fail, and with what. */
bool mock_is_to_fail(const MockCall* call, int* result);
/** Ends the record. */
void mock_end(MockCall* call, long long result);

/** The value of an option, `otherwise` if it was never set. */
long mock_option(const char* name, long otherwise);
/** Remembers an offence. */
void mock_offend(const char* format, ...);
/** Changes the balance of mock_context_balance(). */
void mock_count_context(long change);

/** Adds a live object. */
void mock_object_add(const char* kind, const void* object, size_t bytes);
/** Whether an object lives; its size goes to `*bytes`, which may be null. */
bool mock_object_find(const char* kind, const void* object, size_t* bytes);
/** Whether `address` lies in a live object of `kind`. */
bool mock_object_contains(const char* kind, const void* address);
/** Ends an object's life; an offence, and false, if there is none. */
bool mock_object_remove(const char* kind, const void* object);

#endif /* MOCK_RECORD_H_ */
