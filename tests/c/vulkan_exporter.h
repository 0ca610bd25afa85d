/*
 * An application of Vulkan's that knows nothing of ONNX Runtime: it exports memory of its own
 * device by file descriptor, writes it, and reads it.
 */
#ifndef TESTS_C_VULKAN_EXPORTER_H_
#define TESTS_C_VULKAN_EXPORTER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vulkan/vulkan.h>

/** A device and one exportable buffer. */
typedef struct Exporter {
  VkInstance instance;
  VkPhysicalDevice physical;
  VkDevice device;
  VkQueue queue;
  VkCommandPool pool;
  VkBuffer buffer;
  VkDeviceMemory memory;
  size_t size;  /**< Of the allocation. */
  void* mapped; /**< The exporter's own view. */
} Exporter;

/** Makes a device on the first GPU, and memory of at least `bytes` bytes if that is not 0. */
void exporter_open(Exporter* exporter, size_t bytes);
/** A new descriptor of the memory, which the caller closes. */
int exporter_fd(const Exporter* exporter);
/** Fills `bytes` bytes at `offset` with 32-bit `word`s, by the device. */
void exporter_fill(const Exporter* exporter, size_t offset, size_t bytes, uint32_t word);
/** Releases everything. */
void exporter_close(Exporter* exporter);

#endif /* TESTS_C_VULKAN_EXPORTER_H_ */
