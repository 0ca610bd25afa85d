/* The simulated Vulkan device from the inside. */
#ifndef SIM_VULKAN_H_
#define SIM_VULKAN_H_

#include <stdatomic.h>
#include <string.h>

#include "ep_platform.h"
#include "mock_record.h"
#include "mock_share.h"
#include "mock_sim.h"

#define SIM_MAX_COPIES 4

/** Memory, which is the host's. */
typedef struct SimMemory {
  size_t bytes;
  char* data;
  bool is_shared; /**< Mapped from `share`. */
  bool is_owned;  /**< Allocated here; a host pointer's is not. */
  MockShare share;
} SimMemory;

typedef struct SimBuffer {
  size_t bytes;
  VkExternalMemoryHandleTypeFlags external;
  SimMemory* memory;
  atomic_size_t pending; /**< Submissions that use it. */
} SimBuffer;

/** A timeline. */
typedef struct SimSemaphore {
  _Atomic uint64_t* value; /**< `own`, or memory shared with other APIs. */
  _Atomic uint64_t own;
  MockShare share;
  atomic_size_t pending; /**< Submissions that use it, and threads that wait for it. */
} SimSemaphore;

typedef struct SimCopy {
  SimBuffer* source;
  SimBuffer* destination;
  VkBufferCopy range;
} SimCopy;

/** A command buffer; it records copies and nothing else. */
typedef struct SimCommands {
  void* pool;
  SimCopy copies[SIM_MAX_COPIES];
  size_t copy_count;
  SimBuffer* acquired[SIM_MAX_COPIES]; /**< External buffers that the device owns at this point. */
  size_t acquired_count;
  bool recording;
  bool ended;
  atomic_size_t pending;
} SimCommands;

/** The struct of `type` in a chain, null if there is none. */
const void* sim_chained(const void* next, VkStructureType type);
/** Whether something still uses an object. What uses one of a lost device soon ends. */
bool sim_is_used(atomic_size_t* pending);
/** Sleeps for a moment. */
void sim_nap(void);
/** Starts the device's queues, or ends them when they have done everything. */
void sim_queues_start(void);
void sim_queues_stop(void);

#endif /* SIM_VULKAN_H_ */
