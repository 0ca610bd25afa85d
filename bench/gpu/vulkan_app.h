/*
 * The application's side of a frame, in Vulkan: a buffer and a timeline semaphore that it exports, and
 * command buffers that fill the first half of the buffer and look at the second.
 */
#ifndef BENCH_GPU_VULKAN_APP_H_
#define BENCH_GPU_VULKAN_APP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct VulkanApp VulkanApp;

/** A device of the GPU whose UUID is `uuid` (32 hexadecimal digits), with a buffer of two halves of
 *  `half` bytes, ready for `frames` frames. Ends the program, with the reason, on failure. */
VulkanApp* vulkan_open(const char* uuid, size_t half, uint32_t frames);
/** Releases everything, after the GPU has come to rest. */
void vulkan_close(VulkanApp* app);

/** What the device calls itself. */
const char* vulkan_name(const VulkanApp* app);
/** Its UUID, as 32 hexadecimal digits. */
const char* vulkan_uuid(const VulkanApp* app);

/** What the application tells an EP that is to work on its device: see graphics_options.h. */
typedef struct VulkanHandles {
  uintptr_t get_instance_proc_addr;
  uintptr_t instance;
  uintptr_t physical;
  uintptr_t device;
  uint32_t family;
  uint32_t queue; /**< The application submits to another one, if the device has two. */
  bool has_address;
} VulkanHandles;
VulkanHandles vulkan_handles(const VulkanApp* app);
/** Whether the queue of vulkan_handles() is not the application's own. */
bool vulkan_has_two_queues(const VulkanApp* app);

/** Whether the device exports timeline semaphores as descriptors. */
bool vulkan_exports_semaphores(const VulkanApp* app);
/** New descriptors, which the caller closes; and the size of the allocation. */
int vulkan_memory_fd(const VulkanApp* app, size_t* size);
int vulkan_semaphore_fd(const VulkanApp* app);

/** Submits the producer of a frame: waits for `wait`, fills the first half with `frame + 1`, signals
 *  `signal`. */
void vulkan_produce(VulkanApp* app, uint32_t frame, uint64_t wait, uint64_t signal);
/** Submits the consumer of a frame: waits for `wait`, takes the first and the last word of the second
 *  half. */
void vulkan_consume(VulkanApp* app, uint32_t frame, uint64_t wait);
/** Raises the semaphore from the host. */
void vulkan_signal(const VulkanApp* app, uint64_t value);
/** The semaphore's value now. */
uint64_t vulkan_value(const VulkanApp* app);
/** Waits on the host for a value, for `milliseconds` at most. @return whether it came */
bool vulkan_wait(const VulkanApp* app, uint64_t value, uint32_t milliseconds);
/** Waits until all consumers are done. */
void vulkan_rest(VulkanApp* app);
/** Whether the consumer of `frame`, which is done, saw `frame + 1` at both ends. */
bool vulkan_saw(const VulkanApp* app, uint32_t frame);

#endif /* BENCH_GPU_VULKAN_APP_H_ */
