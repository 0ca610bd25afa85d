/*
 * What every object of one factory shares. It lives as long as the last of them, so a handle or a
 * tensor may outlive its importer, and even the factory.
 */
#ifndef EP_CONTEXT_H_
#define EP_CONTEXT_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ep_driver.h"
#include "ep_registry.h"

/** Most EP devices that ONNX Runtime takes from a factory. */
#define EP_MAX_DEVICES 8

typedef struct EpContext EpContext;

/** A device of the driver and the memory info that ONNX Runtime knows its tensors by. */
typedef struct EpDevice {
  EpContext* context;
  EpDriverDevice* driver;
  const EpDeviceInfo* info;
  OrtMemoryInfo* memory_info;           /**< Owned. */
  const OrtMemoryDevice* memory_device; /**< Of `memory_info`. */
  /** Made where ONNX Runtime lists no hardware for the device; its EP devices refer to it. Owned. */
  OrtHardwareDevice* unlisted_hardware;
} EpDevice;

struct EpContext {
  const OrtApi* api;
  const OrtEpApi* ep_api;
  const OrtLogger* logger; /**< The environment's, which outlives the factory; may be null. */
  uint32_t api_version;    /**< The host's release, at most EP_API_NEWEST. */
  /** For `version` and `ort_version_supported` of every struct. A host reads a struct as far as
   *  its stamp says, so it is never above the newest release whose EP structs are known here. */
  uint32_t stamp;
  atomic_size_t references;
  EpDriver* driver;
  EpDevice devices[EP_MAX_DEVICES];
  size_t device_count;
  EpRegistry handles; /**< Live memory and semaphore handles; the value is their EpResource. */
};

/** Loads the driver and describes its devices. The caller owns a reference. Null, with `error`
 *  written, when that fails; a driver without devices is no failure. */
EpContext* ep_context_create(const OrtApi* api, uint32_t api_version, const OrtLogger* logger,
                             EpError* error);
/** Adds a reference. */
void ep_context_retain(EpContext* context);
/** Drops a reference, and with the last one everything. Null is ignored. */
void ep_context_release(EpContext* context);

/** The device that `ep_device` stands for; null, with `error` written, if it is not of this EP. */
EpDevice* ep_context_find_device(EpContext* context, const OrtEpDevice* ep_device, EpError* error);
/** The device whose default memory is on `memory_device`, or null. */
EpDevice* ep_context_find_memory(EpContext* context, const OrtMemoryDevice* memory_device);
/** The device that an EP device's metadata names, or null. */
EpDevice* ep_context_find_metadata(EpContext* context, const OrtKeyValuePairs* metadata);

#endif /* EP_CONTEXT_H_ */
