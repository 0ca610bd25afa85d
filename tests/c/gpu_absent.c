/*
 * On a machine without the driver the EP registers, and offers nothing.
 *
 * gpu_absent ORT_LIBRARY EP_LIBRARY
 */
#include "client.h"

int main(int argc, char** argv) {
  CHECK(argc == 3);
  Client client;
  client_load(&client, argv[1]);
  const OrtApi* api = client.api;
  OK(&client, api->RegisterExecutionProviderLibrary(client.env, "gpu", argv[2]));
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  OK(&client, api->GetEpDevices(client.env, &devices, &count));
  for (size_t i = 0; i < count; ++i) {
    CHECK(strcmp(api->EpDevice_EpName(devices[i]), EP_NAME_UNDER_TEST) != 0);
  }
  OK(&client, api->UnregisterExecutionProviderLibrary(client.env, "gpu"));
  api->ReleaseEnv(client.env);
  puts("no devices");
  return 0;
}
