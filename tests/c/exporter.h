/*
 * The application's side of shared memory and semaphores, of whichever EP is tested: the host EP's
 * own, or the mock of a GPU's driver (MOCK_FILE is defined).
 */
#ifndef TESTS_C_EXPORTER_H_
#define TESTS_C_EXPORTER_H_

#include "client.h"

#ifdef MOCK_FILE
#ifndef EXPORTER_REFUSED_MEMORY
/** What the message of a refusal by whoever opens the descriptor says. */
#define EXPORTER_REFUSED_MEMORY "ImportExternalMemory failed: "
#define EXPORTER_REFUSED_SIZE EXPORTER_REFUSED_MEMORY
#define EXPORTER_REFUSED_SEMAPHORE "ImportExternalSemaphore failed: "
#endif
#else
#define EXPORTER_REFUSED_MEMORY "named 'ort-interop-memory'"
#define EXPORTER_REFUSED_SIZE "has 8192 bytes"
#define EXPORTER_REFUSED_SEMAPHORE "ort-interop-semaphore"
#endif

/** A descriptor of new memory that the EP can import. */
int exporter_memory(size_t bytes);
/** A descriptor of a new semaphore of this value. */
int exporter_semaphore(uint64_t value);
/** Its memory, until exporter_unmap(). */
void* exporter_map(int semaphore_fd);
void exporter_unmap(void* semaphore);
/** The value of a mapped semaphore. */
uint64_t exporter_value(void* semaphore);
/** Raises it. */
void exporter_signal(void* semaphore, uint64_t value);
/** Waits until it is `value`, for a minute at most. @return whether it is */
bool exporter_wait(void* semaphore, uint64_t value);

/** How many calls the EP's driver has got; 0 where none are counted. */
size_t exporter_driver_calls(void);
/** Records no calls from now on: a long test would run out of memory. */
void exporter_forget_calls(void);
/** Waits until the EP has given back every import that is released. */
void exporter_settle(void);
/** Ends the program if the driver was misused, or still holds something. */
void exporter_check(void);

#endif /* TESTS_C_EXPORTER_H_ */
