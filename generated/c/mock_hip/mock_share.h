/* Memory that two APIs of one machine share, as a descriptor or a HANDLE. */
#ifndef MOCK_SHARE_H_
#define MOCK_SHARE_H_

#include "mock.h"

/** Size of a semaphore's memory. */
#define MOCK_SEMAPHORE_BYTES 4096

/** What a descriptor or HANDLE stood for when it was taken over. */
typedef struct MockShare {
  intptr_t native;
  bool consumed;
  uint64_t device;
  uint64_t inode;
} MockShare;

/** Opens the object behind `native`; a `consumed` one is closed by mock_share_close(). False if it is
 *  not shared memory of at least `bytes` bytes. */
bool mock_share_open(MockShare* share, intptr_t native, bool consumed, size_t bytes);
/** Ends the use; an offence if somebody else has closed a consumed one. */
void mock_share_close(const MockShare* share);

#endif /* MOCK_SHARE_H_ */
