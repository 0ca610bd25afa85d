/*
 * An ONNX Runtime that is too old refuses the EP with a status that names both versions.
 *
 * old_host ORT_LIBRARY EP_LIBRARY
 */
#include "client.h"

int main(int argc, char** argv) {
  CHECK(argc == 3);
  static Client client;
  client_load(&client, argv[1]);
  CHECK(client.minor < 24);
  OrtStatus* status =
      client.api->RegisterExecutionProviderLibrary(client.env, "host_interop", argv[2]);
  CHECK(status != NULL);
  puts(client.api->GetErrorMessage(status));
  client.api->ReleaseStatus(status);
  client_close(&client);
  return 0;
}
