/*
 * The set of objects that are alive, by address: a handle is looked up here before it is read, so
 * that one that was released, or that another EP made, is an error and not a crash.
 */
#ifndef EP_REGISTRY_H_
#define EP_REGISTRY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ep_platform.h"

#define EP_REGISTRY_BUCKETS 256

typedef struct EpRegistryEntry EpRegistryEntry;

/** Safe to use from several threads. */
typedef struct EpRegistry {
  EpMutex mutex;
  EpRegistryEntry* buckets[EP_REGISTRY_BUCKETS];
} EpRegistry;

/** Makes `registry` an empty set. */
void ep_registry_init(EpRegistry* registry);
/** Releases what `registry` itself holds; the objects in it are left alone. */
void ep_registry_destroy(EpRegistry* registry);

/** Adds `object`, which is not in the set, with a `value` of the caller's choice.
 *  @return false when memory is short; the set is then as before. */
bool ep_registry_add(EpRegistry* registry, const void* object, uintptr_t value);

/** Takes `object` out; `*value` (may be null) becomes its value. @return false if it is absent. */
bool ep_registry_remove(EpRegistry* registry, const void* object, uintptr_t* value);

/** Looks `object` up. While the set is locked calls `found(value, argument)`, which may take a
 *  reference. @return false if `object` is absent; `found` is then not called. */
bool ep_registry_find(EpRegistry* registry, const void* object,
                      void (*found)(uintptr_t value, void* argument), void* argument);

#endif /* EP_REGISTRY_H_ */
