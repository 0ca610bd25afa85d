#include "ep_registry.h"

#include <stdlib.h>
#include <string.h>

struct EpRegistryEntry {
  EpRegistryEntry* next;
  const void* object;
  uintptr_t value;
};

/* The low bits of an address say little: objects of a size lie at multiples of it. */
static size_t ep_registry_bucket(const void* object) {
  uint64_t bits = (uint64_t)(uintptr_t)object;
  bits *= UINT64_C(0x9e3779b97f4a7c15);
  return (size_t)(bits >> 56) % EP_REGISTRY_BUCKETS;
}

/* The link that points at the entry of `object`, or the null link at the end of its bucket. */
static EpRegistryEntry** ep_registry_link(EpRegistry* registry, const void* object) {
  EpRegistryEntry** link = &registry->buckets[ep_registry_bucket(object)];
  while (*link != NULL && (*link)->object != object) {
    link = &(*link)->next;
  }
  return link;
}

void ep_registry_init(EpRegistry* registry) {
  ep_mutex_init(&registry->mutex);
  memset(registry->buckets, 0, sizeof registry->buckets);
}

void ep_registry_destroy(EpRegistry* registry) {
  for (size_t i = 0; i < EP_REGISTRY_BUCKETS; ++i) {
    for (EpRegistryEntry* entry = registry->buckets[i]; entry != NULL;) {
      EpRegistryEntry* next = entry->next;
      free(entry);
      entry = next;
    }
  }
  ep_mutex_destroy(&registry->mutex);
}

bool ep_registry_add(EpRegistry* registry, const void* object, uintptr_t value) {
  EpRegistryEntry* entry = malloc(sizeof *entry);
  if (entry == NULL) {
    return false;
  }
  ep_mutex_lock(&registry->mutex);
  EpRegistryEntry** head = &registry->buckets[ep_registry_bucket(object)];
  entry->next = *head;
  entry->object = object;
  entry->value = value;
  *head = entry;
  ep_mutex_unlock(&registry->mutex);
  return true;
}

bool ep_registry_remove(EpRegistry* registry, const void* object, uintptr_t* value) {
  ep_mutex_lock(&registry->mutex);
  EpRegistryEntry** link = ep_registry_link(registry, object);
  EpRegistryEntry* entry = *link;
  if (entry != NULL) {
    *link = entry->next;
  }
  ep_mutex_unlock(&registry->mutex);
  if (entry == NULL) {
    return false;
  }
  if (value != NULL) {
    *value = entry->value;
  }
  free(entry);
  return true;
}

bool ep_registry_find(EpRegistry* registry, const void* object,
                      void (*found)(uintptr_t value, void* argument), void* argument) {
  ep_mutex_lock(&registry->mutex);
  const EpRegistryEntry* entry = *ep_registry_link(registry, object);
  if (entry != NULL) {
    found(entry->value, argument);
  }
  ep_mutex_unlock(&registry->mutex);
  return entry != NULL;
}
