/*
 * Streams, copies, events and fences, on the immediate context.
 *
 * A copy to host memory waits for the device, and so for what the stream waits for: Direct3D 11 has no
 * copy to memory that it does not own. Other threads work with the device meanwhile.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "d3d11_device.h"

struct EpDriverStream {
  EpDriverDevice* device;
  EpDriverStream* next;
};

struct EpDriverEvent {
  EpDriverDevice* device;
  uint64_t value; /* 0 before the first record. */
};

struct EpDriverSemaphore {
  EpDriverDevice* device;
  ID3D11Fence* fence;
};

bool d3d11_mark(EpDriverDevice* device, uint64_t* value, EpError* error) {
  HRESULT result =
      ID3D11DeviceContext4_Signal(device->context, device->fence, device->fence_value + 1);
  if (FAILED(result)) {
    return d3d11_failed(error, "ID3D11DeviceContext4::Signal", result);
  }
  ID3D11DeviceContext4_Flush(device->context);
  *value = ++device->fence_value;
  return true;
}

bool d3d11_wait(EpDriverDevice* device, uint64_t value, EpError* error) {
  HANDLE reached = CreateEventW(NULL, TRUE, FALSE, NULL);
  if (reached == NULL) {
    return ep_fail(error, ORT_FAIL, EP_NAME ": Windows has no event left");
  }
  HRESULT result = ID3D11Fence_SetEventOnCompletion(device->fence, value, reached);
  if (SUCCEEDED(result)) {
    (void)WaitForSingleObject(reached, INFINITE);
  }
  (void)CloseHandle(reached);
  return SUCCEEDED(result) || d3d11_failed(error, "ID3D11Fence::SetEventOnCompletion", result);
}

bool ep_driver_stream_create(EpDriverDevice* device, EpDriverStream** stream, EpError* error) {
  *stream = malloc(sizeof **stream);
  if (*stream == NULL) {
    return ep_out_of_memory(error);
  }
  ep_mutex_lock(&device->mutex);
  **stream = (EpDriverStream){device, device->streams};
  device->streams = *stream;
  ep_mutex_unlock(&device->mutex);
  return true;
}

void ep_driver_stream_release(EpDriverStream* stream) {
  EpDriverDevice* device = stream->device;
  ep_mutex_lock(&device->mutex);
  EpDriverStream** link = &device->streams;
  while (*link != stream) {
    link = &(*link)->next;
  }
  *link = stream->next;
  ep_mutex_unlock(&device->mutex);
  free(stream);
}

void* ep_driver_stream_native(EpDriverStream* stream) {
  return stream;
}

EpDriverStream* ep_driver_stream_from_native(EpDriverDevice* device, void* native) {
  ep_mutex_lock(&device->mutex);
  EpDriverStream* stream = device->streams;
  while (stream != NULL && stream != native) {
    stream = stream->next;
  }
  ep_mutex_unlock(&device->mutex);
  return stream;
}

bool ep_driver_stream_flush(EpDriverStream* stream, EpError* error) {
  uint64_t value = 0;
  ep_mutex_lock(&stream->device->mutex);
  bool good = d3d11_mark(stream->device, &value, error);
  ep_mutex_unlock(&stream->device->mutex);
  return good && d3d11_wait(stream->device, value, error);
}

/* The buffer that has `bytes` bytes at `address`, which become `box`. Called with the mutex held. */
static ID3D11Buffer* d3d11_locate(EpDriverDevice* device, const void* address, size_t bytes,
                                  D3D11_BOX* box, EpError* error) {
  EpRange* range = ep_range_find(device->memory, address, bytes);
  if (range == NULL) {
    (void)ep_fail(error, ORT_EP_FAIL, EP_NAME ": no buffer has %zu bytes at %p", bytes, address);
    return NULL;
  }
  uintptr_t offset = (uintptr_t)address - (uintptr_t)range->address;
  *box = (D3D11_BOX){(UINT)offset, 0, 0, (UINT)(offset + bytes), 1, 1};
  return ((D3D11Memory*)range)->buffer;
}

/* Copies within the device, or from the host. Called with the mutex held. */
static bool d3d11_enqueue_copy(EpDriverDevice* device, EpCopyKind kind, void* destination,
                               const void* source, size_t bytes, EpError* error) {
  D3D11_BOX to;
  D3D11_BOX from;
  ID3D11Buffer* target = d3d11_locate(device, destination, bytes, &to, error);
  if (target == NULL) {
    return false;
  }
  if (kind == EP_COPY_HOST_TO_DEVICE) {
    ID3D11DeviceContext4_UpdateSubresource(device->context, (ID3D11Resource*)target, 0, &to, source,
                                           (UINT)bytes, 0);
    return true;
  }
  ID3D11Buffer* origin = d3d11_locate(device, source, bytes, &from, error);
  if (origin == NULL) {
    return false;
  }
  ID3D11DeviceContext4_CopySubresourceRegion(device->context, (ID3D11Resource*)target, 0, to.left,
                                             0, 0, (ID3D11Resource*)origin, 0, &from);
  return true;
}

/* Enqueues a copy to a new buffer that the host can map, which is there when the device's fence has
 * `value`. Null with `error` written. Called with the mutex held. */
static ID3D11Buffer* d3d11_stage(EpDriverDevice* device, const void* source, size_t bytes,
                                 uint64_t* value, EpError* error) {
  D3D11_BOX from;
  ID3D11Buffer* origin = d3d11_locate(device, source, bytes, &from, error);
  if (origin == NULL) {
    return NULL;
  }
  D3D11_BUFFER_DESC desc = {.ByteWidth = (UINT)bytes,
                            .Usage = D3D11_USAGE_STAGING,
                            .CPUAccessFlags = D3D11_CPU_ACCESS_READ};
  ID3D11Buffer* staging = NULL;
  HRESULT result = ID3D11Device5_CreateBuffer(device->device, &desc, NULL, &staging);
  if (FAILED(result)) {
    (void)d3d11_failed(error, "ID3D11Device::CreateBuffer", result);
    return NULL;
  }
  ID3D11DeviceContext4_CopySubresourceRegion(device->context, (ID3D11Resource*)staging, 0, 0, 0, 0,
                                             (ID3D11Resource*)origin, 0, &from);
  if (!d3d11_mark(device, value, error)) {
    (void)ID3D11Buffer_Release(staging);
    return NULL;
  }
  return staging;
}

/* Reads what d3d11_stage() copied. Called with the mutex held. */
static bool d3d11_unload(EpDriverDevice* device, ID3D11Buffer* staging, void* destination,
                         size_t bytes, EpError* error) {
  ID3D11Resource* resource = (ID3D11Resource*)staging;
  D3D11_MAPPED_SUBRESOURCE mapped;
  HRESULT result =
      ID3D11DeviceContext4_Map(device->context, resource, 0, D3D11_MAP_READ, 0, &mapped);
  if (FAILED(result)) {
    return d3d11_failed(error, "ID3D11DeviceContext::Map", result);
  }
  memcpy(destination, mapped.pData, bytes);
  ID3D11DeviceContext4_Unmap(device->context, resource, 0);
  return true;
}

/* Copies to the host; blocks, but no other call on the device meanwhile. */
static bool d3d11_read(EpDriverDevice* device, void* destination, const void* source, size_t bytes,
                       EpError* error) {
  uint64_t value = 0;
  ep_mutex_lock(&device->mutex);
  ID3D11Buffer* staging = d3d11_stage(device, source, bytes, &value, error);
  ep_mutex_unlock(&device->mutex);
  if (staging == NULL) {
    return false;
  }
  bool good = d3d11_wait(device, value, error);
  if (good) {
    ep_mutex_lock(&device->mutex);
    good = d3d11_unload(device, staging, destination, bytes, error);
    ep_mutex_unlock(&device->mutex);
  }
  (void)ID3D11Buffer_Release(staging);
  return good;
}

bool ep_driver_copy(EpDriverDevice* device, EpDriverStream* stream, EpCopyKind kind,
                    void* destination, const void* source, size_t bytes, EpError* error) {
  if (bytes > UINT32_MAX) {
    return ep_fail(error, ORT_NOT_IMPLEMENTED, EP_NAME ": %zu bytes are more than a buffer holds",
                   bytes);
  }
  if (destination == source) {
    return true;
  }
  if (kind == EP_COPY_DEVICE_TO_HOST) {
    return d3d11_read(device, destination, source, bytes, error);
  }
  uint64_t value = 0;
  ep_mutex_lock(&device->mutex);
  bool good = d3d11_enqueue_copy(device, kind, destination, source, bytes, error) &&
              d3d11_mark(device, &value, error);
  ep_mutex_unlock(&device->mutex);
  return good && (stream != NULL || d3d11_wait(device, value, error));
}

bool ep_driver_event_create(EpDriverDevice* device, EpDriverEvent** event, EpError* error) {
  *event = calloc(1, sizeof **event);
  if (*event == NULL) {
    return ep_out_of_memory(error);
  }
  (*event)->device = device;
  return true;
}

void ep_driver_event_release(EpDriverEvent* event) {
  free(event);
}

bool ep_driver_event_record(EpDriverEvent* event, EpDriverStream* stream, EpError* error) {
  (void)stream;
  ep_mutex_lock(&event->device->mutex);
  bool good = d3d11_mark(event->device, &event->value, error);
  ep_mutex_unlock(&event->device->mutex);
  return good;
}

bool ep_driver_event_wait(EpDriverEvent* event, EpDriverStream* stream, EpError* error) {
  /* The immediate context works in order, so what follows comes later anyway. */
  (void)event;
  (void)stream;
  (void)error;
  return true;
}

bool ep_driver_event_wait_on_host(EpDriverEvent* event, EpError* error) {
  ep_mutex_lock(&event->device->mutex);
  uint64_t value = event->value;
  ep_mutex_unlock(&event->device->mutex);
  return value == 0 || d3d11_wait(event->device, value, error);
}

bool ep_driver_can_import_semaphore(EpDriverDevice* device, const EpHandleType* type) {
  (void)device;
  return type->ort_type == (uint32_t)ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE;
}

bool ep_driver_import_semaphore(EpDriverDevice* device, const EpHandleType* type,
                                EpNativeHandle native, EpDriverSemaphore** out, EpError* error) {
  (void)type;
  *out = NULL;
  EpDriverSemaphore* semaphore = malloc(sizeof *semaphore);
  if (semaphore == NULL) {
    return ep_out_of_memory(error);
  }
  void* opened = NULL;
  HRESULT result =
      ID3D11Device5_OpenSharedFence(device->device, native.handle, &IID_ID3D11Fence, &opened);
  if (FAILED(result)) {
    free(semaphore);
    return d3d11_failed(error, "ID3D11Device5::OpenSharedFence", result);
  }
  *semaphore = (EpDriverSemaphore){device, opened};
  *out = semaphore;
  return true;
}

void ep_driver_semaphore_release(EpDriverSemaphore* semaphore) {
  (void)ID3D11Fence_Release(semaphore->fence);
  free(semaphore);
}

bool ep_driver_semaphore_wait(EpDriverSemaphore* semaphore, EpDriverStream* stream, uint64_t value,
                              EpError* error) {
  EpDriverDevice* device = stream->device;
  ep_mutex_lock(&device->mutex);
  HRESULT result = ID3D11DeviceContext4_Wait(device->context, semaphore->fence, value);
  ep_mutex_unlock(&device->mutex);
  return SUCCEEDED(result) || d3d11_failed(error, "ID3D11DeviceContext4::Wait", result);
}

bool ep_driver_semaphore_signal(EpDriverSemaphore* semaphore, EpDriverStream* stream,
                                uint64_t value, EpError* error) {
  EpDriverDevice* device = stream->device;
  ep_mutex_lock(&device->mutex);
  HRESULT result = ID3D11DeviceContext4_Signal(device->context, semaphore->fence, value);
  ID3D11DeviceContext4_Flush(device->context);
  ep_mutex_unlock(&device->mutex);
  return SUCCEEDED(result) || d3d11_failed(error, "ID3D11DeviceContext4::Signal", result);
}
