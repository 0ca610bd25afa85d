/*
 * The memory of a device by its addresses, for drivers whose calls want the object and not the
 * address. The caller guards each set.
 */
#ifndef EP_RANGE_H_
#define EP_RANGE_H_

#include <stddef.h>

/** Addresses that stand for an object, within it. */
typedef struct EpRange {
  struct EpRange* next;
  char* address;
  size_t bytes;
} EpRange;

/** Adds `range` to the set `*ranges`, which is null when it is empty. */
void ep_range_add(EpRange** ranges, EpRange* range);
/** Takes out `range`, which is in the set. */
void ep_range_remove(EpRange** ranges, EpRange* range);
/** The range that holds `bytes` bytes at `address`, null if none does. */
EpRange* ep_range_find(EpRange* ranges, const void* address, size_t bytes);

#endif /* EP_RANGE_H_ */
