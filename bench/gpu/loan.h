/*
 * The application's device, lent to the vulkan EP by graphics interop.
 */
#ifndef BENCH_GPU_LOAN_H_
#define BENCH_GPU_LOAN_H_

#include "client.h"
#include "vulkan_app.h"

/** Makes the EP's device work on the VkDevice of `app`, and prints what it was given. Ends the
 *  program, with the reason, on failure. */
void loan_begin(const Client* client, const VulkanApp* app);
/** Checks that the device is not given back while the EP uses it. */
void loan_check_in_use(const Client* client);
/** Takes the device back, which the EP uses no longer. */
void loan_end(const Client* client);

#endif /* BENCH_GPU_LOAN_H_ */
