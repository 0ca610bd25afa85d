/*
 * The Vulkan driver's objects. One mutex a device guards everything that changes, and stands for
 * the external synchronisation that Vulkan asks for. Nothing waits for the GPU while it is held.
 */
#ifndef VULKAN_DEVICE_H_
#define VULKAN_DEVICE_H_

#include <stdatomic.h>

#include "driver_api.h"
#include "ep_config.h"
#include "ep_driver.h"
#include "ep_platform.h"
#include "ep_queue.h"
#include "ep_range.h"

#define VULKAN_MAX_DEVICES 8
#define VULKAN_MAX_QUEUES 8

/** A buffer with memory of its own. */
typedef struct VulkanBuffer {
  EpRetirement retirement; /**< First, so that one is found from the other. */
  EpRange range;           /**< Device addresses, or the mapping's where the device has none. */
  EpDriverDevice* device;
  VkBuffer buffer;
  VkDeviceMemory memory;
  char* mapping; /**< Null when it is not mapped. */
  bool external; /**< Shared with another API or process, which owns it between our uses. */
} VulkanBuffer;

/** The buffer whose range is `range`. */
#define VULKAN_BUFFER_OF(range_) ((VulkanBuffer*)((char*)(range_) - offsetof(VulkanBuffer, range)))

/** A queue of the device. What waits in it holds up everything behind it. */
typedef struct VulkanQueue {
  VkQueue queue;
  size_t streams; /**< That submit to it. */
  bool shared;    /**< By any number of streams; the others have one at most. */
} VulkanQueue;

struct EpDriverDevice {
  EpDriver* driver;
  EpDeviceInfo info;
  char name[256];
  char pci_bus_id[32];
  VkPhysicalDevice own_physical; /**< Of the driver's instance. */
  VkPhysicalDevice physical;     /**< The same, or the application's. */
  VkPhysicalDeviceMemoryProperties memory;
  size_t host_pointer_alignment; /**< 0 where host allocations cannot be imported. */
  uint32_t queue_family;
  uint32_t queue_count;
  bool has_address; /**< Buffers have device addresses. */
  bool has[DRIVER_EXTENSION_COUNT];
  VkExternalMemoryHandleTypeFlags memory_types;       /**< That can be imported. */
  VkExternalMemoryHandleTypeFlags dedicated_types;    /**< That need a dedicated allocation. */
  VkExternalSemaphoreHandleTypeFlags semaphore_types; /**< That can be imported as timelines. */

  atomic_bool lost; /**< A call has said so; work of the VkDevice does not end any more. */
  EpMutex mutex;    /**< Guards what follows. */
  DriverApi vk;     /**< Calls of the instance, and of the device once there is one. */
  VkDevice device;  /**< Made when it is first needed. */
  bool borrowed;    /**< The application's device: see ep_driver_graphics_init(). */
  VulkanQueue queues[VULKAN_MAX_QUEUES];
  EpQueues streams;
  size_t stream_count;    /**< Those that are yet to be destroyed included. */
  EpDriverStream* copies; /**< For copies without a stream. */
  EpRange* buffers;       /**< Of tensors' memory. */
  EpRange* staging;       /**< Idle. */
  size_t staging_count;
  size_t semaphores;
};

struct EpDriver {
  DriverApi vk;
  VkInstance instance;
  EpDriverDevice devices[VULKAN_MAX_DEVICES];
  size_t device_count;
};

/** Makes the VkDevice, its queues and its stream for copies if they are not there yet. */
bool vulkan_device_ready(EpDriverDevice* device, EpError* error);

/** The application's device, with the calls of its instance. */
typedef struct VulkanLoan {
  DriverApi vk;
  VkPhysicalDevice physical;
  VkDevice device;
  uint32_t queue_family;
  uint32_t queue;
  bool has_address;
} VulkanLoan;

/** Replaces the device's VkDevice, which is not in use, by the application's. Called with the mutex
 *  held. */
bool vulkan_device_lend(EpDriverDevice* device, const VulkanLoan* loan, EpError* error);
/** Ends the use of the VkDevice, which nothing needs any longer; the next use makes an own one.
 *  Called with the mutex held. */
void vulkan_device_restore(EpDriverDevice* device);

/** What tensors' memory may be used for. */
VkBufferUsageFlags vulkan_buffer_usage(const EpDriverDevice* device);

/** A buffer of `bytes` bytes that the host can map, for one copy. Its content is undefined. Called
 *  with the mutex held; vulkan_staging_put() gives it back. */
VulkanBuffer* vulkan_staging_get(EpDriverDevice* device, size_t bytes, EpError* error);
/** Keeps `staging`, which no work uses any longer, for another copy. Null is ignored. Called with the
 *  mutex held. */
void vulkan_staging_put(VulkanBuffer* staging);
/** Releases idle staging. Called with the mutex held, or when nobody else uses the device. */
void vulkan_staging_clear(EpDriverDevice* device);

/** EpRetirement::done of a buffer that is in no set: destroys it. */
void vulkan_buffer_retired(EpRetirement* buffer);

/** What streams are as queues. */
extern const EpQueueKind vulkan_streams;
/** A new stream; null, with `error` written, on failure. Called with the mutex held. */
EpDriverStream* vulkan_stream_new(EpDriverDevice* device, EpError* error);
/** Whether there are streams besides the one for copies. Called with the mutex held. */
bool vulkan_has_streams(const EpDriverDevice* device);
/** Destroys the device's stream for copies, which is idle. */
void vulkan_copies_destroy(EpDriverDevice* device);

#endif /* VULKAN_DEVICE_H_ */
