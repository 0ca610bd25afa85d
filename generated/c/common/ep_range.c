#include "ep_range.h"

#include <stdint.h>

void ep_range_add(EpRange** ranges, EpRange* range) {
  range->next = *ranges;
  *ranges = range;
}

void ep_range_remove(EpRange** ranges, EpRange* range) {
  while (*ranges != range) {
    ranges = &(*ranges)->next;
  }
  *ranges = range->next;
}

EpRange* ep_range_find(EpRange* ranges, const void* address, size_t bytes) {
  for (; ranges != NULL; ranges = ranges->next) {
    uintptr_t offset = (uintptr_t)address - (uintptr_t)ranges->address;
    if (offset < ranges->bytes && bytes <= ranges->bytes - offset) {
      break;
    }
  }
  return ranges;
}
