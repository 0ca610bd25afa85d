/*
 * For applications: how InitGraphicsInteropForEpDevice lends a VkDevice to the EP.
 *
 * With ORT_GRAPHICS_API_D3D12 (on Windows) there is nothing to lend and nothing to say.
 *
 * OrtGraphicsInteropConfig::graphics_api is ORT_GRAPHICS_API_VULKAN, and additional_options holds
 * all of these keys or none. Each value is a number, decimal or with 0x; for a handle or function it
 * is the pointer's value. Without them the EP makes a device of its own on the same GPU.
 *
 * The call comes before the EP device has streams, memory or sessions; the VkDevice outlives
 * DeinitGraphicsInteropForEpDevice. Only the EP submits to the queue. The device has API version 1.2
 * with timelineSemaphore, and the external memory and semaphore extensions of what is to be imported.
 *
 * Queues: the EP's own device takes up to 8 queues of one family. It keeps the first for copies
 * without a stream; the last is shared by streams; each of the others has one stream at a time. On a
 * lent device all share the queue that is lent, and so they do on a GPU with a single compute queue.
 * A stream that waits does not hold up those that share its queue: what is to wait for a semaphore
 * is submitted when the value is reached, by a thread of the EP.
 */
#ifndef VULKAN_GRAPHICS_H_
#define VULKAN_GRAPHICS_H_

/** PFN_vkGetInstanceProcAddr of the application's loader. */
#define VULKAN_OPTION_GET_INSTANCE_PROC_ADDR "vulkan_get_instance_proc_addr"
/** VkInstance, of API version 1.2 or newer. */
#define VULKAN_OPTION_INSTANCE "vulkan_instance"
/** VkPhysicalDevice; its UUID must be the EP device's. */
#define VULKAN_OPTION_PHYSICAL_DEVICE "vulkan_physical_device"
/** VkDevice. */
#define VULKAN_OPTION_DEVICE "vulkan_device"
/** Family of the EP's queue; one that computes. */
#define VULKAN_OPTION_QUEUE_FAMILY_INDEX "vulkan_queue_family_index"
/** Index of the EP's queue in its family. */
#define VULKAN_OPTION_QUEUE_INDEX "vulkan_queue_index"
/** 1 if the device was made with bufferDeviceAddress, else 0. */
#define VULKAN_OPTION_BUFFER_DEVICE_ADDRESS "vulkan_buffer_device_address"

#endif /* VULKAN_GRAPHICS_H_ */
