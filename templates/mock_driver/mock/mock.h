/*
 * A driver library that stands in for the real one in tests. It has the exported functions of the
 * real one, records every call with its arguments, can make any call fail, and simulates a device:
 * its memory is host memory, its streams are threads. What it is asked to do wrongly is an offence,
 * which it remembers.
 *
 * A test opens the library under its file name, as the EP does, and looks these functions up.
 * Environment variables do the same for programs that cannot: MOCK_DRIVER_OPTIONS="name=value,..."
 * (see mock_set_option), MOCK_DRIVER_FAIL="function:nth:result", MOCK_DRIVER_LOG=file (every record
 * and offence is also appended there), MOCK_DRIVER_RECORD=0 (records nothing).
 */
#ifndef MOCK_H_
#define MOCK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#define MOCK_EXPORT __declspec(dllexport)
#else
#define MOCK_EXPORT __attribute__((visibility("default")))
#endif

/** How many calls are recorded. */
MOCK_EXPORT size_t mock_call_count(void);
/** Record `index`: `name(argument=value, ...) = result`. Valid until mock_forget_calls(). */
MOCK_EXPORT const char* mock_call(size_t index);
/** Empties the record. */
MOCK_EXPORT void mock_forget_calls(void);
/** Whether calls are recorded; they are at first. */
MOCK_EXPORT void mock_set_recording(bool on);

/** Makes the `nth` call of `function` from now on (1 is the next) fail with `result`. A null
 *  `function` counts every function's calls. `nth` 0 takes the plan back. */
MOCK_EXPORT void mock_fail(const char* function, unsigned nth, int result);
/** The function that the plan of mock_fail() has made fail, null if it has none yet. */
MOCK_EXPORT const char* mock_failed_function(void);

/** Live objects of a kind ("memory", "freed memory", "pool", "stream", "event", "external memory", "mapping", "external
 *  semaphore", "host memory", "registration", "context"); of all kinds for null. */
MOCK_EXPORT size_t mock_live(const char* kind);
/** How much more often a context was made current than given up, over all threads. */
MOCK_EXPORT long mock_context_balance(void);
/** How many offences there are. */
MOCK_EXPORT size_t mock_offence_count(void);
/** Offence `index` in words. */
MOCK_EXPORT const char* mock_offence(size_t index);

/** Sets a property of the simulated machine, such as the number of "devices". */
MOCK_EXPORT void mock_set_option(const char* name, long value);

/** Memory as another API of the same GPU would export it: a file descriptor, or a HANDLE on Windows;
 *  -1 or null on failure. The caller closes it. */
MOCK_EXPORT intptr_t mock_export_memory(size_t bytes);
/** A timeline semaphore of that kind, with value 0. */
MOCK_EXPORT intptr_t mock_export_semaphore(void);
/** What lies behind an exported object, mapped for the test; null on failure. A semaphore begins
 *  with its 64-bit value. */
MOCK_EXPORT void* mock_map(intptr_t exported, size_t bytes);
/** Undoes mock_map(). */
MOCK_EXPORT void mock_unmap(void* mapped, size_t bytes);
/** Closes an exported object's descriptor or HANDLE. */
MOCK_EXPORT void mock_close(intptr_t exported);

#endif /* MOCK_H_ */
