/*
 * What the sources of the drivers for CUDA and HIP share. The two APIs mirror each other, so one
 * driver serves both: driver_api.h gives their types and calls the same names, and what really
 * differs is in the backend's own source (the functions gpu_backend_*).
 */
#ifndef GPU_DEVICE_H_
#define GPU_DEVICE_H_

#include <stdatomic.h>

#include "driver_api.h"
#include "ep_config.h"
#include "ep_driver.h"
#include "ep_platform.h"
#include "ep_registry.h"

#define GPU_NAME_CAPACITY 256
#define GPU_BUS_ID_CAPACITY 32

/** Calls the driver on `device`; a failure goes into `error`, with the call's and its own name. */
#define GPU_CALL(device, error, call, ...) \
  gpu_check((device)->driver->api.call(__VA_ARGS__), DRIVER_NAME_##call, error)

typedef struct GpuRetired GpuRetired;
typedef struct GpuStaging GpuStaging;

/** What has to be current while the driver is called for an object; counted by its objects. */
typedef struct GpuContext {
  EpDriverDevice* device;
  atomic_size_t references;
  void* native; /**< The driver's context; null where devices are current, not contexts. */
  bool graphics;
} GpuContext;

/** What was current before gpu_enter(). */
typedef struct GpuScope {
  EpDriverDevice* device;
  GpuDevice previous;
} GpuScope;

struct EpDriverDevice {
  EpDriver* driver;
  GpuDevice native;
  EpDeviceInfo info;
  char name[GPU_NAME_CAPACITY];
  char bus_id[GPU_BUS_ID_CAPACITY];
  EpRegistry allocations; /**< Of ep_driver_alloc(); the value is the GpuContext. */
  atomic_uint probes;     /**< The backend's: what it has found out once. */
  EpMutex mutex;          /**< Guards the rest; work that it is held for does not wait. */
  GpuContext* primary;    /**< Null until first needed. */
  GpuContext* graphics;   /**< That of new objects while graphics interop is on, or null. */
  bool graphics_on;
  EpDriverStream* streams;
  GpuRetired* retired; /**< The oldest first. */
  GpuRetired** retired_end;
  bool reaping;          /**< A thread works on `retired`. */
  EpMutex staging_mutex; /**< Guards `staging`; not held while the driver is called. */
  GpuStaging* staging;
};

struct EpDriver {
  DriverApi api;
  atomic_size_t references;
  size_t device_count;
  EpDriverDevice* devices;
};

struct EpDriverStream {
  EpDriverStream* next;
  GpuContext* context;
  GpuStream native;
  bool released; /**< Kept only until its work is done. */
};

/** True for success; else false, after the failure was written to `error`. */
bool gpu_check(GpuResult result, const char* call, EpError* error);
/** Writes that the process is short of memory. @return false */
bool gpu_out_of_memory(EpError* error);
/** Adds a reference to the driver. */
void gpu_driver_retain(EpDriver* driver);
/** Drops one, and with the last one everything. */
void gpu_driver_drop(EpDriver* driver);

/** A reference to the context for new objects of `device`; null with `error` written. */
GpuContext* gpu_context_acquire(EpDriverDevice* device, EpError* error);
/** Adds a reference. */
void gpu_context_retain(GpuContext* context);
/** Drops a reference, and with the last one the context. Null is ignored. */
void gpu_context_drop(GpuContext* context);
/** gpu_context_acquire() and gpu_enter(). */
GpuContext* gpu_context_begin(EpDriverDevice* device, GpuScope* scope, EpError* error);
/** Ends what gpu_context_begin() began: leaves, and drops the reference if it has no object after
 *  all. @return good */
bool gpu_context_end(GpuContext* context, GpuScope* scope, bool good);
/** gpu_enter() for the release of an object, which must not be given up for one refusal. */
bool gpu_enter_to_release(GpuContext* context, GpuScope* scope);

/** Releases `object` of `context`, which is current if the driver lets it. */
typedef void GpuRelease(GpuContext* context, void* object);
/** Calls `release` once the work that streams of the device hold now is done: at once if there is
 *  none, else from a thread of its own. Does not wait. Takes over the reference to `context`. */
void gpu_retire(GpuContext* context, GpuRelease* release, void* object);

/** Releases the buffers that copies of `device` went through; no stream has work any more. */
void gpu_staging_destroy(EpDriverDevice* device);

/* The backend's own source. */

/** Fills in the UUID and LUID of `device`, if they are known. */
void gpu_backend_identify(EpDriverDevice* device);
/** Takes hold of the driver's context of `device` into `*native`. */
bool gpu_backend_retain(EpDriverDevice* device, void** native, EpError* error);
/** Gives the context up. */
void gpu_backend_release(GpuContext* context);
/** Makes `context` current on this thread until gpu_leave(); false if the driver refuses. */
bool gpu_enter(GpuContext* context, GpuScope* scope, EpError* error);
/** Makes current what was so before. @return good */
bool gpu_leave(GpuScope* scope, bool good);
/** Whether `device` imports memory of `type`, a host allocation included. */
bool gpu_backend_imports_memory(EpDriverDevice* device, const EpHandleType* type);
/** Whether `device` imports semaphores of `type`. */
bool gpu_backend_imports_semaphore(EpDriverDevice* device, const EpHandleType* type);
#if ORT_API_VERSION >= 25
/** A context that works beside the queue in `config`, into `*native`; null where there is none, and
 *  the plain context has to do. */
bool gpu_backend_graphics(EpDriverDevice* device, const OrtApi* api,
                          const OrtGraphicsInteropConfig* config, void** native, EpError* error);
#endif

#endif /* GPU_DEVICE_H_ */
