#include "loan.h"

#include <inttypes.h>

/* The keys of the options, as the vulkan EP documents them. */
#include "graphics_options.h"

static void option(const Client* client, OrtKeyValuePairs* options, const char* key,
                   uint64_t value) {
  char text[24];
  (void)snprintf(text, sizeof text, "0x%" PRIx64, value);
  client->api->AddKeyValuePair(options, key, text);
  printf("  %s = %s\n", key, text);
}

void loan_begin(const Client* client, const VulkanApp* app) {
  if (client->minor < 25) {
    fprintf(stderr, "onnxruntime 1.%u has no graphics interop; 1.25 has\n", client->minor);
    exit(1);
  }
  VulkanHandles handles = vulkan_handles(app);
  OrtKeyValuePairs* options = NULL;
  client->api->CreateKeyValuePairs(&options);
  option(client, options, VULKAN_OPTION_GET_INSTANCE_PROC_ADDR, handles.get_instance_proc_addr);
  option(client, options, VULKAN_OPTION_INSTANCE, handles.instance);
  option(client, options, VULKAN_OPTION_PHYSICAL_DEVICE, handles.physical);
  option(client, options, VULKAN_OPTION_DEVICE, handles.device);
  option(client, options, VULKAN_OPTION_QUEUE_FAMILY_INDEX, handles.family);
  option(client, options, VULKAN_OPTION_QUEUE_INDEX, handles.queue);
  option(client, options, VULKAN_OPTION_BUFFER_DEVICE_ADDRESS, handles.has_address);
  const OrtGraphicsInteropConfig config = {
      .version = 25, .graphics_api = ORT_GRAPHICS_API_VULKAN, .additional_options = options};
  OK(client, client->interop->InitGraphicsInteropForEpDevice(client->device, &config));
  client->api->ReleaseKeyValuePairs(options);
}

void loan_check_in_use(const Client* client) {
  REFUSED(client, client->interop->DeinitGraphicsInteropForEpDevice(client->device), ORT_FAIL,
          "still has");
}

void loan_end(const Client* client) {
  OK(client, client->interop->DeinitGraphicsInteropForEpDevice(client->device));
}
