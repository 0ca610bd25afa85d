/*
 * The Direct3D 11 driver's objects. All streams of a device are its immediate context, which works
 * in order: a stream that waits for a fence holds the others up too.
 */
#ifndef D3D11_DEVICE_H_
#define D3D11_DEVICE_H_

#ifndef _WIN32
#error "Direct3D 11 exists on Windows only"
#endif

#define COBJMACROS
#include <windows.h>
/* After windows.h, whose types it needs. */
#include <d3d11_4.h>

#include "driver_api.h"
#include "ep_config.h"
#include "ep_driver.h"
#include "ep_platform.h"
#include "ep_range.h"

/** A buffer, and the addresses that stand for its bytes: reserved, so that they are nobody else's,
 *  and without storage, so that nobody reads them. */
typedef struct D3D11Memory {
  EpRange range; /**< First, so that one is found from the other. */
  ID3D11Buffer* buffer;
} D3D11Memory;

struct EpDriverDevice {
  EpDriver* driver;
  EpDeviceInfo info;
  char name[256];
  EpMutex mutex; /**< Guards what follows; the immediate context is not safe to share. */
  ID3D11Device5* device;
  ID3D11DeviceContext4* context;
  ID3D11Fence* fence; /**< Signalled by flushes and events. */
  uint64_t fence_value;
  EpRange* memory;
  EpDriverStream* streams;
};

struct EpDriver {
  DriverApi api;
  size_t device_count;
  EpDriverDevice device;
};

/** Writes that `call` returned `result`. @return false, always. */
bool d3d11_failed(EpError* error, const char* call, HRESULT result);
/** Takes over `buffer` and gives it addresses; null, with `buffer` released and `error` written, on
 *  failure. */
D3D11Memory* d3d11_memory_add(EpDriverDevice* device, ID3D11Buffer* buffer, size_t bytes,
                              EpError* error);
/** Releases `memory`; Direct3D keeps the buffer until it is not in use. */
void d3d11_memory_remove(EpDriverDevice* device, D3D11Memory* memory);
/** Enqueues a signal of the device's fence. Called with the mutex held. */
bool d3d11_mark(EpDriverDevice* device, uint64_t* value, EpError* error);
/** Blocks until the device's fence has `value`. */
bool d3d11_wait(EpDriverDevice* device, uint64_t value, EpError* error);

#endif /* D3D11_DEVICE_H_ */
