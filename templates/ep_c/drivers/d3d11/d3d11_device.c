/*
 * The device of the default adapter, its memory, and imports.
 */
/* The interfaces' ids are defined here. */
#define INITGUID
#include "d3d11_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool d3d11_failed(EpError* error, const char* call, HRESULT result) {
  OrtErrorCode code = result == E_INVALIDARG ? ORT_INVALID_ARGUMENT : ORT_EP_FAIL;
  return ep_fail(error, code, EP_NAME ": %s failed: HRESULT 0x%08lX", call, (unsigned long)result);
}

/* Newer interfaces of a new device; false where this Windows has none. */
static bool d3d11_take_interfaces(EpDriverDevice* device, ID3D11Device* base,
                                  ID3D11DeviceContext* context) {
  void* newer_device = NULL;
  void* newer_context = NULL;
  void* fence = NULL;
  (void)ID3D11Device_QueryInterface(base, &IID_ID3D11Device5, &newer_device);
  (void)ID3D11DeviceContext_QueryInterface(context, &IID_ID3D11DeviceContext4, &newer_context);
  device->device = newer_device;
  device->context = newer_context;
  if (device->device == NULL || device->context == NULL ||
      FAILED(ID3D11Device5_CreateFence(device->device, 0, D3D11_FENCE_FLAG_NONE, &IID_ID3D11Fence,
                                       &fence))) {
    return false;
  }
  device->fence = fence;
  return true;
}

static void d3d11_describe(EpDriverDevice* device) {
  EpDeviceInfo* info = &device->info;
  info->name = device->name;
  info->hardware_type = EP_HARDWARE_TYPE;
  info->hardware_vendor = EP_VENDOR;
  info->memory_device_type = EP_MEMORY_DEVICE_TYPE;
  (void)snprintf(device->name, sizeof device->name, "Direct3D 11 device");
  void* dxgi = NULL;
  IDXGIAdapter* adapter = NULL;
  DXGI_ADAPTER_DESC found;
  if (FAILED(ID3D11Device5_QueryInterface(device->device, &IID_IDXGIDevice, &dxgi))) {
    return;
  }
  if (SUCCEEDED(IDXGIDevice_GetAdapter((IDXGIDevice*)dxgi, &adapter))) {
    if (SUCCEEDED(IDXGIAdapter_GetDesc(adapter, &found))) {
      (void)WideCharToMultiByte(CP_UTF8, 0, found.Description, -1, device->name,
                                (int)sizeof device->name, NULL, NULL);
      info->hardware_vendor_id = found.VendorId;
      info->hardware_device_id = found.DeviceId;
      info->has_luid = true;
      info->luid = (uint64_t)(uint32_t)found.AdapterLuid.HighPart << 32 | found.AdapterLuid.LowPart;
    }
    (void)IDXGIAdapter_Release(adapter);
  }
  (void)IDXGIDevice_Release((IDXGIDevice*)dxgi);
}

static void d3d11_device_close(EpDriverDevice* device) {
  if (device->fence != NULL) {
    (void)ID3D11Fence_Release(device->fence);
  }
  if (device->context != NULL) {
    (void)ID3D11DeviceContext4_Release(device->context);
  }
  if (device->device != NULL) {
    (void)ID3D11Device5_Release(device->device);
  }
  ep_mutex_destroy(&device->mutex);
}

bool ep_driver_open(EpDriver** out, EpError* error) {
  EpDriver* driver = calloc(1, sizeof *driver);
  *out = driver;
  if (driver == NULL) {
    return ep_out_of_memory(error);
  }
  EpDriverDevice* device = &driver->device;
  device->driver = driver;
  ep_mutex_init(&device->mutex);
  D3D11Unknown base = NULL;
  D3D11Unknown context = NULL;
  if (!driver_api_open(&driver->api) ||
      FAILED(driver->api.D3D11CreateDevice(NULL, D3D_DRIVER_TYPE_HARDWARE, NULL, 0, NULL, 0,
                                           D3D11_SDK_VERSION, &base, NULL, &context))) {
    return true; /* A machine without Direct3D 11 hardware has no devices. */
  }
  if (d3d11_take_interfaces(device, base, context)) {
    d3d11_describe(device);
    driver->device_count = 1;
  }
  (void)ID3D11DeviceContext_Release((ID3D11DeviceContext*)context);
  (void)ID3D11Device_Release((ID3D11Device*)base);
  return true;
}

void ep_driver_close(EpDriver* driver) {
  d3d11_device_close(&driver->device);
  free(driver);
}

size_t ep_driver_device_count(const EpDriver* driver) {
  return driver->device_count;
}

EpDriverDevice* ep_driver_device(EpDriver* driver, size_t index) {
  (void)index;
  return &driver->device;
}

const EpDeviceInfo* ep_driver_device_info(const EpDriverDevice* device) {
  return &device->info;
}

D3D11Memory* d3d11_memory_add(EpDriverDevice* device, ID3D11Buffer* buffer, size_t bytes,
                              EpError* error) {
  D3D11Memory* memory = calloc(1, sizeof *memory);
  char* address = VirtualAlloc(NULL, bytes, MEM_RESERVE, PAGE_NOACCESS);
  if (memory == NULL || address == NULL) {
    free(memory);
    if (address != NULL) {
      (void)VirtualFree(address, 0, MEM_RELEASE);
    }
    (void)ID3D11Buffer_Release(buffer);
    (void)ep_fail(error, ORT_FAIL, EP_NAME ": out of memory or addresses");
    return NULL;
  }
  *memory = (D3D11Memory){.range = {.address = address, .bytes = bytes}, .buffer = buffer};
  ep_mutex_lock(&device->mutex);
  ep_range_add(&device->memory, &memory->range);
  ep_mutex_unlock(&device->mutex);
  return memory;
}

void d3d11_memory_remove(EpDriverDevice* device, D3D11Memory* memory) {
  ep_mutex_lock(&device->mutex);
  ep_range_remove(&device->memory, &memory->range);
  (void)ID3D11Buffer_Release(memory->buffer);
  ep_mutex_unlock(&device->mutex);
  (void)VirtualFree(memory->range.address, 0, MEM_RELEASE);
  free(memory);
}

void* ep_driver_alloc(EpDriverDevice* device, size_t bytes) {
  const size_t unit = 16;
  if (bytes > UINT32_MAX - unit) {
    return NULL;
  }
  D3D11_BUFFER_DESC desc = {.ByteWidth = (UINT)((bytes + unit - 1) / unit * unit),
                            .Usage = D3D11_USAGE_DEFAULT,
                            .BindFlags = D3D11_BIND_UNORDERED_ACCESS,
                            .MiscFlags = D3D11_RESOURCE_MISC_BUFFER_ALLOW_RAW_VIEWS};
  ID3D11Buffer* buffer = NULL;
  EpError ignored;
  if (FAILED(ID3D11Device5_CreateBuffer(device->device, &desc, NULL, &buffer))) {
    return NULL;
  }
  D3D11Memory* memory = d3d11_memory_add(device, buffer, bytes, &ignored);
  return memory == NULL ? NULL : memory->range.address;
}

void ep_driver_free(EpDriverDevice* device, void* address) {
  ep_mutex_lock(&device->mutex);
  EpRange* range = device->memory;
  while (range != NULL && range->address != address) {
    range = range->next;
  }
  ep_mutex_unlock(&device->mutex);
  if (range != NULL) {
    d3d11_memory_remove(device, (D3D11Memory*)range);
  }
}

bool ep_driver_can_import_memory(EpDriverDevice* device, const EpHandleType* type) {
  (void)device;
  return type->ort_type == (uint32_t)ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE;
}

struct EpDriverMemory {
  EpDriverDevice* device;
  D3D11Memory* memory;
  size_t offset;
};

bool ep_driver_import_memory(EpDriverDevice* device, const EpMemoryRequest* request,
                             EpDriverMemory** out, EpError* error) {
  *out = NULL;
  EpDriverMemory* imported = malloc(sizeof *imported);
  if (imported == NULL) {
    return ep_out_of_memory(error);
  }
  void* opened = NULL;
  HRESULT result = ID3D11Device5_OpenSharedResource1(device->device, request->native.handle,
                                                     &IID_ID3D11Buffer, &opened);
  if (FAILED(result)) {
    free(imported);
    return d3d11_failed(error, "ID3D11Device1::OpenSharedResource1", result);
  }
  ID3D11Buffer* buffer = opened;
  D3D11_BUFFER_DESC desc;
  ID3D11Buffer_GetDesc(buffer, &desc);
  if (desc.ByteWidth < request->size_bytes) {
    (void)ID3D11Buffer_Release(buffer);
    free(imported);
    return ep_fail_argument(error, "size_bytes is %zu, but the shared buffer has %lu bytes",
                            request->size_bytes, (unsigned long)desc.ByteWidth);
  }
  D3D11Memory* memory = d3d11_memory_add(device, buffer, request->size_bytes, error);
  if (memory == NULL) {
    free(imported);
    return false;
  }
  *imported = (EpDriverMemory){device, memory, request->offset_bytes};
  *out = imported;
  return true;
}

void* ep_driver_memory_address(const EpDriverMemory* imported) {
  return imported->memory->range.address + imported->offset;
}

void ep_driver_memory_release(EpDriverMemory* imported) {
  d3d11_memory_remove(imported->device, imported->memory);
  free(imported);
}

#if ORT_API_VERSION >= 25
bool ep_driver_graphics_init(EpDriverDevice* device, const OrtApi* api,
                             const OrtGraphicsInteropConfig* config, EpError* error) {
  (void)device;
  (void)api;
  return config->graphics_api == ORT_GRAPHICS_API_D3D12 ||
         ep_fail(error, ORT_NOT_IMPLEMENTED,
                 "graphics_api is %d; " EP_NAME " works beside Direct3D 12 (%d) only",
                 (int)config->graphics_api, (int)ORT_GRAPHICS_API_D3D12);
}

bool ep_driver_graphics_deinit(EpDriverDevice* device, EpError* error) {
  (void)device;
  (void)error;
  return true;
}
#endif
