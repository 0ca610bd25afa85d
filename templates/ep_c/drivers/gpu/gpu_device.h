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
  DRIVER_TRY(&(device)->driver->api, error, call, __VA_ARGS__)

/** The same with `context` current; `scope` is a GpuScope. */
#define GPU_CALL_IN(context, scope, error, call, ...) \
  (gpu_enter(context, &(scope), error) &&             \
   gpu_leave(&(scope), GPU_CALL((context)->device, error, call, __VA_ARGS__)))

/** Puts a native handle of `type` into a description of the driver's. */
#define GPU_SET_HANDLE(description, type, native)                                \
  ((type)->kind == EP_NATIVE_FD ? (void)((description)->handle.fd = (native).fd) \
                                : (void)((description)->handle.win32.handle = (native).handle))

typedef struct GpuRetired GpuRetired;
typedef struct GpuStaging GpuStaging;

/** Where allocations come from in the order of streams; all null until first needed. */
typedef struct GpuPool {
  GpuMemoryPool native;
  GpuStream allocations; /**< Never has work that waits. */
  GpuStream frees;
} GpuPool;

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
  bool pooled;            /**< Allocations come from `pool`, but for those of graphics contexts. */
  /** Held while a wait for a semaphore is enqueued, and while what blocks is released; taken before
   *  `mutex`. Guards the next two. */
  EpMutex gate;
  GpuRetired* retired;
  bool reaping;         /**< A thread works on `retired`. */
  EpMutex mutex;        /**< Guards the rest; work that it is held for does not wait. */
  GpuContext* primary;  /**< Null until first needed. */
  GpuContext* graphics; /**< That of new objects while graphics interop is on, or null. */
  bool graphics_on;
  EpDriverStream* streams;
  GpuPool pool;
  EpMutex staging_mutex; /**< Guards `staging`; not held while the driver is called. */
  GpuStaging* staging;
};

struct EpDriver {
  DriverApi api;
  size_t device_count;
  EpDriverDevice* devices;
};

struct EpDriverStream {
  GpuContext* context;
  EpDriverStream* next;
  GpuStream native;
  GpuEvent mark; /**< For others to follow. */
  bool released; /**< Kept only until its work is done. */
};

/** Adds a reference. */
void gpu_context_retain(GpuContext* context);
/** Drops a reference, and with the last one the context. Null is ignored. */
void gpu_context_drop(GpuContext* context);
/** A reference to the context for new objects of `device`, which is the device's `primary` one or
 *  that of graphics interop while that is on, and gpu_enter(). Null with `error` written. */
GpuContext* gpu_context_begin(EpDriverDevice* device, bool primary, GpuScope* scope,
                              EpError* error);
/** Ends what gpu_context_begin() began: leaves, and drops the reference if it has no object after
 *  all. @return good */
bool gpu_context_end(GpuContext* context, GpuScope* scope, bool good);
/** A new object of `bytes` zero bytes, behind the GpuContext* that it begins with: that of
 *  gpu_context_begin(). Null with `error` written. */
void* gpu_object_begin(EpDriverDevice* device, bool primary, size_t bytes, GpuScope* scope,
                       EpError* error);
/** gpu_context_end(). @return `object`, or null, with it gone, if it has not become `good` */
void* gpu_object_end(void* object, GpuScope* scope, bool good);
/** gpu_enter() for the release of an object, which must not be given up for one refusal. */
bool gpu_enter_to_release(GpuContext* context, GpuScope* scope);

/** Releases `object` of `context`, which is current if the driver lets it. */
typedef void GpuRelease(GpuContext* context, void* object);
/** Calls `release` when no stream of the device has work: at once, or later from another thread.
 *  Does not wait. Takes over the reference to `context`. */
void gpu_retire(GpuContext* context, GpuRelease* release, void* object);
/** Calls `release`, which does not block. Takes over the reference to `context`. */
void gpu_release_now(GpuContext* context, GpuRelease* release, void* object);
/** Whether `stream` has work. One that twice gives no answer does none any more. */
bool gpu_has_work(EpDriverStream* stream);
/** Locks the device's gate, so that a wait for a semaphore may be enqueued. */
void gpu_gate_lock(EpDriverDevice* device);
/** Makes `follower` wait for the work that streams of `device` hold now. Its context is current. */
bool gpu_stream_follow(EpDriverDevice* device, GpuStream follower, EpError* error);

/** Whether the driver allocates memory of `device` in the order of streams. */
bool gpu_pool_supported(const EpDriverDevice* device);
/** Memory that every stream can use at once. The device's primary context is current. */
bool gpu_pool_alloc(EpDriverDevice* device, size_t bytes, GpuAddress* out, EpError* error);
/** Gives the pool up, if there is one. The device's primary context is current. */
void gpu_pool_destroy(EpDriverDevice* device);

/** Releases the buffers that copies of `device` went through; no stream has work any more. The
 *  device's primary context is current. */
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
