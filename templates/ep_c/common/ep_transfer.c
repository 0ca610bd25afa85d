#include "ep_transfer.h"

#include <stdio.h>
#include <stdlib.h>

#include "ep_config.h"
#include "ep_stream.h"
#include "ep_tensor.h"
#include "ep_trace.h"

typedef struct EpTransfer {
  OrtDataTransferImpl base;
  EpContext* context;
} EpTransfer;

static bool ep_transfer_reaches(EpContext* context, const OrtMemoryDevice* memory_device) {
  return ep_context_find_memory(context, memory_device) != NULL ||
         context->ep_api->MemoryDevice_GetDeviceType(memory_device) == OrtMemoryInfoDeviceType_CPU;
}

static bool ORT_API_CALL ep_transfer_can_copy(const OrtDataTransferImpl* base,
                                              const OrtMemoryDevice* source,
                                              const OrtMemoryDevice* destination) {
  EpContext* context = ((const EpTransfer*)base)->context;
  const EpDevice* from = ep_context_find_memory(context, source);
  const EpDevice* to = ep_context_find_memory(context, destination);
  return (from != NULL || to != NULL) && (from == NULL || to == NULL || from == to) &&
         ep_transfer_reaches(context, source) && ep_transfer_reaches(context, destination);
}

/* One copy of a batch, checked before any of the batch is started. */
typedef struct EpTransferStep {
  EpTensorView source;
  EpTensorView destination;
  EpDriverStream* stream;
} EpTransferStep;

static bool ep_transfer_prepare(EpContext* context, const OrtValue* source, OrtValue* destination,
                                const OrtSyncStream* stream, size_t index, EpTransferStep* step,
                                EpError* error) {
  char name[48];
  (void)snprintf(name, sizeof name, "src_tensors[%zu]", index);
  if (!ep_tensor_view(context, source, name, &step->source, error)) {
    return false;
  }
  (void)snprintf(name, sizeof name, "dst_tensors[%zu]", index);
  if (!ep_tensor_view(context, destination, name, &step->destination, error)) {
    return false;
  }
  if (step->source.bytes != step->destination.bytes) {
    return ep_fail_argument(error, "src_tensors[%zu] has %zu bytes, dst_tensors[%zu] has %zu",
                            index, step->source.bytes, index, step->destination.bytes);
  }
  const EpDevice* from = step->source.device;
  const EpDevice* to = step->destination.device;
  if (from != NULL && to != NULL && from != to) {
    return ep_fail(error, ORT_NOT_IMPLEMENTED,
                   "src_tensors[%zu] is on device %u and dst_tensors[%zu] on device %u", index,
                   (unsigned)from->info->memory_device_id, index,
                   (unsigned)to->info->memory_device_id);
  }
  const EpDevice* device = from != NULL ? from : to;
  step->stream = NULL;
  return stream == NULL || device == NULL ||
         ep_stream_of_device(device, stream, &step->stream, error);
}

static OrtStatus* ORT_API_CALL ep_transfer_copy_tensors(OrtDataTransferImpl* base,
                                                        const OrtValue** sources,
                                                        OrtValue** destinations,
                                                        OrtSyncStream** streams, size_t count) {
  EpContext* context = ((EpTransfer*)base)->context;
  EpError error;
  ep_error_clear(&error);
  EpTransferStep* steps = count == 0 ? NULL : calloc(count, sizeof *steps);
  if (count > 0 && steps == NULL) {
    (void)ep_fail(&error, ORT_FAIL, EP_NAME ": out of memory for %zu copies", count);
    return ep_status(context->api, &error);
  }
  bool good = true;
  for (size_t i = 0; good && i < count; ++i) {
    good = ep_transfer_prepare(context, sources[i], destinations[i],
                               streams == NULL ? NULL : streams[i], i, &steps[i], &error);
  }
  for (size_t i = 0; good && i < count; ++i) {
    ep_trace_copy(context, "transfer", &steps[i].destination, &steps[i].source);
    good = ep_tensor_copy(&steps[i].destination, &steps[i].source, steps[i].stream, &error);
  }
  free(steps);
  return ep_status(context->api, &error);
}

static void ORT_API_CALL ep_transfer_release(OrtDataTransferImpl* base) {
  EpTransfer* transfer = (EpTransfer*)base;
  ep_context_release(transfer->context);
  free(transfer);
}

OrtDataTransferImpl* ep_transfer_create(EpContext* context, EpError* error) {
  EpTransfer* transfer = calloc(1, sizeof *transfer);
  if (transfer == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  transfer->context = context;
  ep_context_retain(context);
  transfer->base.ort_version_supported = context->stamp;
  transfer->base.Release = ep_transfer_release;
  transfer->base.CanCopy = ep_transfer_can_copy;
  transfer->base.CopyTensors = ep_transfer_copy_tensors;
  return &transfer->base;
}
