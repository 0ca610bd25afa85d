#include "ep_provider.h"

#include <stdlib.h>

#include "ep_config.h"
#include "ep_identity.h"
#include "ep_memcpy_kernels.h"
#include "ep_stream.h"

typedef struct EpProvider {
  OrtEp base;
  EpDevice* device;
  EpStreamGroup* streams;
  OrtKernelRegistry* kernels;
} EpProvider;

static const char* ORT_API_CALL ep_provider_get_name(const OrtEp* base) {
  (void)base;
  return EP_NAME;
}

/* Each node on its own: ONNX Runtime then places copies between them and other EPs' nodes. */
static bool ep_provider_claim(EpContext* context, const OrtGraph* graph,
                              OrtEpGraphSupportInfo* support, EpError* error) {
  const OrtApi* api = context->api;
  size_t count = 0;
  if (!ep_check(api, api->Graph_GetNumNodes(graph, &count), error) || count == 0) {
    return error->code == ORT_OK;
  }
  const OrtNode** nodes = calloc(count, sizeof *nodes);
  if (nodes == NULL) {
    return ep_fail(error, ORT_FAIL, EP_NAME ": out of memory for %zu nodes", count);
  }
  bool good = ep_check(api, api->Graph_GetNodes(graph, nodes, count), error);
  for (size_t i = 0; good && i < count; ++i) {
    bool supported = false;
    good = ep_identity_supports(api, nodes[i], &supported, error);
    if (good && supported) {
      OrtNodeFusionOptions options = {.ort_version_supported = context->stamp};
      good = ep_check(
          api, context->ep_api->EpGraphSupportInfo_AddNodesToFuse(support, &nodes[i], 1, &options),
          error);
    }
  }
  free(nodes);
  return good;
}

static OrtStatus* ORT_API_CALL ep_provider_get_capability(OrtEp* base, const OrtGraph* graph,
                                                          OrtEpGraphSupportInfo* support) {
  EpContext* context = ((EpProvider*)base)->device->context;
  EpError error;
  ep_error_clear(&error);
  (void)ep_provider_claim(context, graph, support, &error);
  return ep_status(context->api, &error);
}

static void ORT_API_CALL ep_provider_release_node_compute_infos(OrtEp* base,
                                                                OrtNodeComputeInfo** infos,
                                                                size_t count) {
  (void)base;
  for (size_t i = 0; i < count; ++i) {
    ep_identity_release(infos[i]);
    infos[i] = NULL;
  }
}

static OrtStatus* ORT_API_CALL ep_provider_compile(OrtEp* base, const OrtGraph** graphs,
                                                   const OrtNode** fused_nodes, size_t count,
                                                   OrtNodeComputeInfo** infos,
                                                   OrtNode** ep_context_nodes) {
  (void)graphs;
  (void)fused_nodes;
  (void)ep_context_nodes;
  EpProvider* provider = (EpProvider*)base;
  EpError error;
  ep_error_clear(&error);
  for (size_t i = 0; i < count; ++i) {
    infos[i] = ep_identity_create(provider->device, &error);
    if (infos[i] == NULL) {
      ep_provider_release_node_compute_infos(base, infos, i);
      break;
    }
  }
  return ep_status(provider->device->context->api, &error);
}

static OrtStatus* ORT_API_CALL ep_provider_create_stream(OrtEp* base,
                                                         const OrtMemoryDevice* memory_device,
                                                         OrtSyncStreamImpl** stream) {
  EpProvider* provider = (EpProvider*)base;
  EpDevice* device = provider->device;
  EpError error;
  ep_error_clear(&error);
  *stream = NULL;
  if (memory_device == NULL ||
      !device->context->ep_api->MemoryDevice_AreEqual(device->memory_device, memory_device)) {
    (void)ep_fail_argument(&error,
                           "memory_device is not the default memory of the session's "
                           "device %u (%s)",
                           (unsigned)device->info->memory_device_id, device->info->name);
  } else {
    *stream = ep_stream_create(device, provider->streams, &error);
  }
  return ep_status(device->context->api, &error);
}

static OrtStatus* ORT_API_CALL ep_provider_get_kernel_registry(OrtEp* base,
                                                               const OrtKernelRegistry** registry) {
  *registry = ((EpProvider*)base)->kernels;
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_provider_is_concurrent_run_supported(OrtEp* base,
                                                                       bool* supported) {
  (void)base;
  *supported = true;
  return NULL;
}

#if ORT_API_VERSION >= 25
/* The session's own streams only: the application's may wait for what the caller does next. */
static OrtStatus* ORT_API_CALL ep_provider_sync(OrtEp* base) {
  EpProvider* provider = (EpProvider*)base;
  EpError error;
  ep_error_clear(&error);
  (void)ep_stream_group_flush(provider->streams, &error);
  return ep_status(provider->device->context->api, &error);
}
#endif

OrtEp* ep_provider_create(EpDevice* device, EpError* error) {
  EpProvider* provider = calloc(1, sizeof *provider);
  if (provider == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  provider->device = device;
  ep_context_retain(device->context);
  OrtEp* base = &provider->base;
  base->ort_version_supported = device->context->stamp;
  base->GetName = ep_provider_get_name;
  base->GetCapability = ep_provider_get_capability;
  base->Compile = ep_provider_compile;
  base->ReleaseNodeComputeInfos = ep_provider_release_node_compute_infos;
  base->CreateSyncStreamForDevice = ep_provider_create_stream;
  base->GetKernelRegistry = ep_provider_get_kernel_registry;
  base->IsConcurrentRunSupported = ep_provider_is_concurrent_run_supported;
#if ORT_API_VERSION >= 25
  if (device->context->stamp >= 25) {
    base->Sync = ep_provider_sync;
  }
#endif
  provider->streams = ep_stream_group_create(error);
  if (provider->streams == NULL || !ep_memcpy_kernels_create(device, &provider->kernels, error)) {
    ep_provider_release(base);
    return NULL;
  }
  return base;
}

void ep_provider_release(OrtEp* base) {
  EpProvider* provider = (EpProvider*)base;
  if (provider == NULL) {
    return;
  }
  EpContext* context = provider->device->context;
  if (provider->kernels != NULL) {
    context->ep_api->ReleaseKernelRegistry(provider->kernels);
  }
  ep_stream_group_release(provider->streams);
  free(provider);
  ep_context_release(context);
}
