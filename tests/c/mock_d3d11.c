/*
 * A d3d11.dll whose COM objects are mocks: buffers are shared memory, a fence is a counter in shared
 * memory, and the immediate context is a thread that works in order. Only what the d3d11 EP calls is
 * there; any other method is null. Links with the recording part of the mock drivers.
 */
#define COBJMACROS
#define INITGUID
#include <windows.h>
/* After windows.h, whose types it needs. */
#include <d3d11_4.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ep_platform.h"
#include "mock_record.h"
#include "mock_share.h"

typedef struct MockBuffer {
  ID3D11Buffer iface;
  atomic_ulong references;
  UINT bytes;
  char* data;
  bool shared;
} MockBuffer;

typedef struct MockFence {
  ID3D11Fence iface;
  atomic_ulong references;
  _Atomic UINT64* value;
  _Atomic UINT64 own;
} MockFence;

typedef struct MockTask {
  struct MockTask* next;
  MockFence* fence; /* With `value`, a wait or a signal. */
  UINT64 value;
  bool is_signal;
  MockBuffer* target; /* A copy, from `source` or from `data`. */
  UINT target_offset;
  MockBuffer* source;
  UINT source_offset;
  UINT bytes;
  void* data;
  HANDLE done; /* Set when the task is reached. */
} MockTask;

static struct {
  ID3D11Device5 device;
  ID3D11DeviceContext4 context;
  IDXGIDevice dxgi;
  IDXGIAdapter adapter;
  atomic_long references; /* Of the device and the context together. */
  EpMutex mutex;
  bool working;
  MockTask* first;
  MockTask** last;
} mock;

static ULONG STDMETHODCALLTYPE buffer_release(ID3D11Buffer* iface) {
  MockBuffer* buffer = (MockBuffer*)iface;
  ULONG left = atomic_fetch_sub(&buffer->references, 1) - 1;
  if (left == 0) {
    (void)mock_object_remove("buffer", buffer);
    if (buffer->shared) {
      mock_unmap(buffer->data, buffer->bytes);
    } else {
      free(buffer->data);
    }
    free(buffer);
  }
  return left;
}

static void STDMETHODCALLTYPE buffer_get_desc(ID3D11Buffer* iface, D3D11_BUFFER_DESC* desc) {
  memset(desc, 0, sizeof *desc);
  desc->ByteWidth = ((MockBuffer*)iface)->bytes;
}

static const ID3D11BufferVtbl buffer_methods = {.Release = buffer_release,
                                                .GetDesc = buffer_get_desc};

static ID3D11Buffer* buffer_create(UINT bytes, char* data, bool shared) {
  MockBuffer* buffer = calloc(1, sizeof *buffer);
  buffer->iface.lpVtbl = (ID3D11BufferVtbl*)(uintptr_t)&buffer_methods;
  atomic_init(&buffer->references, 1);
  buffer->bytes = bytes;
  buffer->data = data;
  buffer->shared = shared;
  mock_object_add("buffer", buffer, sizeof *buffer);
  return &buffer->iface;
}

static ULONG STDMETHODCALLTYPE fence_release(ID3D11Fence* iface) {
  MockFence* fence = (MockFence*)iface;
  ULONG left = atomic_fetch_sub(&fence->references, 1) - 1;
  if (left == 0) {
    (void)mock_object_remove("fence", fence);
    if (fence->value != &fence->own) {
      mock_unmap((void*)(uintptr_t)fence->value, MOCK_SEMAPHORE_BYTES);
    }
    free(fence);
  }
  return left;
}

static HRESULT STDMETHODCALLTYPE fence_set_event(ID3D11Fence* iface, UINT64 value, HANDLE event) {
  MockFence* fence = (MockFence*)iface;
  while (atomic_load(fence->value) < value) {
    Sleep(1);
  }
  return SetEvent(event) ? S_OK : E_FAIL;
}

static const ID3D11FenceVtbl fence_methods = {.Release = fence_release,
                                              .SetEventOnCompletion = fence_set_event};

static ID3D11Fence* fence_create(void* shared) {
  MockFence* fence = calloc(1, sizeof *fence);
  fence->iface.lpVtbl = (ID3D11FenceVtbl*)(uintptr_t)&fence_methods;
  atomic_init(&fence->references, 1);
  fence->value = shared != NULL ? shared : &fence->own;
  mock_object_add("fence", fence, sizeof *fence);
  return &fence->iface;
}

static void mock_run(MockTask* task) {
  if (task->fence != NULL) {
    if (task->is_signal && atomic_load(task->fence->value) >= task->value) {
      mock_offend("Signal: the fence is at %llu already", (unsigned long long)task->value);
    }
    while (!task->is_signal && atomic_load(task->fence->value) < task->value) {
      Sleep(1);
    }
    if (task->is_signal) {
      atomic_store(task->fence->value, task->value);
    }
    (void)fence_release(&task->fence->iface);
  }
  if (task->target != NULL) {
    const char* from = task->source != NULL ? task->source->data + task->source_offset : task->data;
    memmove(task->target->data + task->target_offset, from, task->bytes);
    (void)buffer_release(&task->target->iface);
    if (task->source != NULL) {
      (void)buffer_release(&task->source->iface);
    }
  }
  if (task->done != NULL) {
    (void)SetEvent(task->done);
  }
  free(task->data);
  free(task);
}

/* The immediate context; it is there while it has tasks. */
static void mock_work(void* argument) {
  (void)argument;
  ep_mutex_lock(&mock.mutex);
  while (mock.first != NULL) {
    MockTask* task = mock.first;
    mock.first = task->next;
    if (mock.first == NULL) {
      mock.last = &mock.first;
    }
    ep_mutex_unlock(&mock.mutex);
    mock_run(task);
    ep_mutex_lock(&mock.mutex);
  }
  mock.working = false;
  ep_mutex_unlock(&mock.mutex);
}

static void mock_push(MockTask task) {
  MockTask* copy = malloc(sizeof *copy);
  *copy = task;
  ep_mutex_lock(&mock.mutex);
  *mock.last = copy;
  mock.last = &copy->next;
  if (!mock.working) {
    mock.working = ep_thread_start(mock_work, NULL);
  }
  ep_mutex_unlock(&mock.mutex);
}

static MockBuffer* buffer_of(ID3D11Resource* resource) {
  MockBuffer* buffer = (MockBuffer*)resource;
  atomic_fetch_add(&buffer->references, 1);
  return buffer;
}

static HRESULT STDMETHODCALLTYPE context_fence(ID3D11Fence* iface, UINT64 value, bool is_signal) {
  MockFence* fence = (MockFence*)iface;
  if (!mock_object_find("fence", fence, NULL)) {
    return E_INVALIDARG;
  }
  atomic_fetch_add(&fence->references, 1);
  mock_push((MockTask){.fence = fence, .value = value, .is_signal = is_signal});
  return S_OK;
}

static HRESULT STDMETHODCALLTYPE context_signal(ID3D11DeviceContext4* context, ID3D11Fence* fence,
                                                UINT64 value) {
  (void)context;
  return context_fence(fence, value, true);
}

static HRESULT STDMETHODCALLTYPE context_wait(ID3D11DeviceContext4* context, ID3D11Fence* fence,
                                              UINT64 value) {
  (void)context;
  return context_fence(fence, value, false);
}

static void STDMETHODCALLTYPE context_flush(ID3D11DeviceContext4* context) {
  (void)context;
}

static void STDMETHODCALLTYPE context_update(ID3D11DeviceContext4* context, ID3D11Resource* target,
                                             UINT subresource, const D3D11_BOX* box,
                                             const void* data, UINT row, UINT depth) {
  (void)context;
  (void)subresource;
  (void)row;
  (void)depth;
  UINT bytes = box->right - box->left;
  void* copy = malloc(bytes);
  memcpy(copy, data, bytes);
  mock_push((MockTask){
      .target = buffer_of(target), .target_offset = box->left, .bytes = bytes, .data = copy});
}

static void STDMETHODCALLTYPE context_copy(ID3D11DeviceContext4* context, ID3D11Resource* target,
                                           UINT target_subresource, UINT x, UINT y, UINT z,
                                           ID3D11Resource* source, UINT source_subresource,
                                           const D3D11_BOX* box) {
  (void)context;
  (void)target_subresource;
  (void)y;
  (void)z;
  (void)source_subresource;
  UINT bytes = box->right - box->left;
  if (box->bottom != 1 || box->back != 1 || box->right > ((MockBuffer*)source)->bytes ||
      bytes > ((MockBuffer*)target)->bytes - x) {
    mock_offend("CopySubresourceRegion: past the end of a buffer");
  }
  mock_push((MockTask){.target = buffer_of(target),
                       .target_offset = x,
                       .source = buffer_of(source),
                       .source_offset = box->left,
                       .bytes = bytes});
}

static HRESULT STDMETHODCALLTYPE context_map(ID3D11DeviceContext4* context,
                                             ID3D11Resource* resource, UINT subresource,
                                             D3D11_MAP type, UINT flags,
                                             D3D11_MAPPED_SUBRESOURCE* mapped) {
  (void)context;
  (void)subresource;
  if (type != D3D11_MAP_READ || flags != 0) {
    return E_INVALIDARG;
  }
  HANDLE done = CreateEventW(NULL, TRUE, FALSE, NULL);
  mock_push((MockTask){.done = done});
  (void)WaitForSingleObject(done, INFINITE);
  (void)CloseHandle(done);
  mapped->pData = ((MockBuffer*)resource)->data;
  return S_OK;
}

static void STDMETHODCALLTYPE context_unmap(ID3D11DeviceContext4* context, ID3D11Resource* resource,
                                            UINT subresource) {
  (void)context;
  (void)resource;
  (void)subresource;
}

static HRESULT mock_take(REFIID wanted, const IID* id, void* object, void** out) {
  if (!IsEqualIID(wanted, id)) {
    *out = NULL;
    return E_NOINTERFACE;
  }
  atomic_fetch_add(&mock.references, 1);
  *out = object;
  return S_OK;
}

static ULONG mock_drop(void) {
  long left = atomic_fetch_sub(&mock.references, 1) - 1;
  if (left < 0) {
    mock_offend("an interface of the device is released once too often");
  }
  if (left == 0) {
    (void)mock_object_remove("device", &mock);
  }
  return (ULONG)left;
}

static HRESULT STDMETHODCALLTYPE context_query(ID3D11DeviceContext4* context, REFIID id,
                                               void** out) {
  return mock_take(id, &IID_ID3D11DeviceContext4, context, out);
}

static ULONG STDMETHODCALLTYPE context_release(ID3D11DeviceContext4* context) {
  (void)context;
  return mock_drop();
}

static HRESULT STDMETHODCALLTYPE device_query(ID3D11Device5* device, REFIID id, void** out) {
  if (IsEqualIID(id, &IID_IDXGIDevice)) {
    return mock_take(id, &IID_IDXGIDevice, &mock.dxgi, out);
  }
  return mock_take(id, &IID_ID3D11Device5, device, out);
}

static ULONG STDMETHODCALLTYPE device_release(ID3D11Device5* device) {
  (void)device;
  return mock_drop();
}

static HRESULT STDMETHODCALLTYPE device_create_buffer(ID3D11Device5* device,
                                                      const D3D11_BUFFER_DESC* desc,
                                                      const D3D11_SUBRESOURCE_DATA* data,
                                                      ID3D11Buffer** out) {
  (void)device;
  (void)data;
  *out = buffer_create(desc->ByteWidth, calloc(1, desc->ByteWidth), false);
  return S_OK;
}

static HRESULT STDMETHODCALLTYPE device_create_fence(ID3D11Device5* device, UINT64 value,
                                                     D3D11_FENCE_FLAG flags, REFIID id,
                                                     void** out) {
  (void)device;
  (void)value;
  (void)flags;
  *out = NULL;
  if (!IsEqualIID(id, &IID_ID3D11Fence)) {
    return E_NOINTERFACE;
  }
  *out = fence_create(NULL);
  return S_OK;
}

static HRESULT STDMETHODCALLTYPE device_open_resource(ID3D11Device5* device, HANDLE handle,
                                                      REFIID id, void** out) {
  (void)device;
  MEMORY_BASIC_INFORMATION info;
  *out = NULL;
  char* data = mock_map((intptr_t)handle, 0);
  if (data == NULL || VirtualQuery(data, &info, sizeof info) == 0) {
    return E_INVALIDARG;
  }
  if (!IsEqualIID(id, &IID_ID3D11Buffer)) {
    return E_NOINTERFACE;
  }
  *out = buffer_create((UINT)info.RegionSize, data, true);
  return S_OK;
}

static HRESULT STDMETHODCALLTYPE device_open_fence(ID3D11Device5* device, HANDLE handle, REFIID id,
                                                   void** out) {
  (void)device;
  *out = NULL;
  void* shared = mock_map((intptr_t)handle, MOCK_SEMAPHORE_BYTES);
  if (shared == NULL || !IsEqualIID(id, &IID_ID3D11Fence)) {
    return E_INVALIDARG;
  }
  *out = fence_create(shared);
  return S_OK;
}

static ULONG STDMETHODCALLTYPE dxgi_release(IDXGIDevice* device) {
  (void)device;
  return mock_drop();
}

static HRESULT STDMETHODCALLTYPE dxgi_get_adapter(IDXGIDevice* device, IDXGIAdapter** adapter) {
  (void)device;
  atomic_fetch_add(&mock.references, 1);
  *adapter = &mock.adapter;
  return S_OK;
}

static ULONG STDMETHODCALLTYPE adapter_release(IDXGIAdapter* adapter) {
  (void)adapter;
  return mock_drop();
}

static HRESULT STDMETHODCALLTYPE adapter_get_desc(IDXGIAdapter* adapter, DXGI_ADAPTER_DESC* desc) {
  (void)adapter;
  memset(desc, 0, sizeof *desc);
  (void)wcscpy(desc->Description, L"Mock adapter");
  desc->VendorId = 0x1234;
  desc->DeviceId = 0x100;
  desc->AdapterLuid.LowPart = (DWORD)mock_option("luid", 1);
  return S_OK;
}

static const ID3D11DeviceContext4Vtbl context_methods = {
    .QueryInterface = context_query,
    .Release = context_release,
    .Map = context_map,
    .Unmap = context_unmap,
    .CopySubresourceRegion = context_copy,
    .UpdateSubresource = context_update,
    .Flush = context_flush,
    .Signal = context_signal,
    .Wait = context_wait,
};
static const ID3D11Device5Vtbl device_methods = {
    .QueryInterface = device_query,
    .Release = device_release,
    .CreateBuffer = device_create_buffer,
    .OpenSharedResource1 = device_open_resource,
    .OpenSharedFence = device_open_fence,
    .CreateFence = device_create_fence,
};
static const IDXGIDeviceVtbl dxgi_methods = {.Release = dxgi_release,
                                             .GetAdapter = dxgi_get_adapter};
static const IDXGIAdapterVtbl adapter_methods = {.Release = adapter_release,
                                                 .GetDesc = adapter_get_desc};

MOCK_EXPORT HRESULT WINAPI D3D11CreateDevice(IDXGIAdapter* adapter, D3D_DRIVER_TYPE type,
                                             HMODULE software, UINT flags,
                                             const D3D_FEATURE_LEVEL* levels, UINT level_count,
                                             UINT sdk_version, ID3D11Device** device,
                                             D3D_FEATURE_LEVEL* level,
                                             ID3D11DeviceContext** context) {
  (void)software;
  (void)levels;
  (void)level_count;
  (void)level;
  if (adapter != NULL || type != D3D_DRIVER_TYPE_HARDWARE || flags != 0 ||
      sdk_version != D3D11_SDK_VERSION) {
    mock_offend("D3D11CreateDevice: type %d, flags %u, version %u", (int)type, flags, sdk_version);
  }
  mock.device.lpVtbl = (ID3D11Device5Vtbl*)(uintptr_t)&device_methods;
  mock.context.lpVtbl = (ID3D11DeviceContext4Vtbl*)(uintptr_t)&context_methods;
  mock.dxgi.lpVtbl = (IDXGIDeviceVtbl*)(uintptr_t)&dxgi_methods;
  mock.adapter.lpVtbl = (IDXGIAdapterVtbl*)(uintptr_t)&adapter_methods;
  if (mock.last == NULL) {
    ep_mutex_init(&mock.mutex);
    mock.last = &mock.first;
  }
  mock_object_add("device", &mock, sizeof mock);
  atomic_fetch_add(&mock.references, 2);
  *device = (ID3D11Device*)&mock.device;
  *context = (ID3D11DeviceContext*)&mock.context;
  return S_OK;
}
