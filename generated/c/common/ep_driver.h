/*
 * What a backend implements. Everything else of the EP is the same for all backends.
 *
 * A driver never sees ONNX Runtime's objects. Arguments arrive checked: pointers are not null,
 * sizes do not overflow, handle types are ones that ep_config.h lists. A function that returns
 * bool returns false after it has written the reason into `error` (messages name the driver's own
 * call and error), and leaves its out-parameter null. All functions may be called from any thread;
 * none may leave a driver context current that was not so before.
 *
 * "Enqueued" means: the call returns at once, the work runs on the stream, after what was enqueued
 * there before.
 */
#ifndef EP_DRIVER_H_
#define EP_DRIVER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ep_error.h"

/** The loaded driver: one for the process. */
typedef struct EpDriver EpDriver;
/** A device of the driver; lives as long as its EpDriver. */
typedef struct EpDriverDevice EpDriverDevice;
/** An ordered queue of work on a device. */
typedef struct EpDriverStream EpDriverStream;
/** A point in a stream that others can wait for. */
typedef struct EpDriverEvent EpDriverEvent;
/** Imported memory, mapped where kernels of the device can use it. */
typedef struct EpDriverMemory EpDriverMemory;
/** An imported timeline semaphore. */
typedef struct EpDriverSemaphore EpDriverSemaphore;

/** What a native handle is, and so how it is checked and who owns it. */
typedef enum EpNativeKind {
  EP_NATIVE_WIN32,   /**< A HANDLE: never null, never consumed by an import. */
  EP_NATIVE_FD,      /**< A file descriptor in the pointer's value; 0 is a valid one. */
  EP_NATIVE_POINTER, /**< The address of a host allocation, aligned to a page. */
} EpNativeKind;

/** Platforms, as bits of EpHandleType::platforms. */
#define EP_ON_LINUX 1u
#define EP_ON_WINDOWS 2u
#ifdef _WIN32
#define EP_THIS_PLATFORM EP_ON_WINDOWS
#else
#define EP_THIS_PLATFORM EP_ON_LINUX
#endif

/** A handle type that the backend may import: a row of a table in ep_config.c. */
typedef struct EpHandleType {
  const char* name;     /**< ONNX Runtime's name of the constant. */
  uint32_t ort_type;    /**< OrtExternalMemoryHandleType or OrtExternalSemaphoreType. */
  uint32_t since;       /**< Release of ONNX Runtime, as 1.N, from which on it is offered. */
  uint32_t platforms;   /**< Where it exists. */
  EpNativeKind kind;    /**< What the native handle is. */
  uint32_t driver_type; /**< The driver's own constant for the type. */
  bool dedicated;       /**< The driver must be told that the allocation is a dedicated one. */
} EpHandleType;

/** A native handle as the driver gets it: the member that `EpHandleType::kind` selects. */
typedef union EpNativeHandle {
  void* handle;  /**< EP_NATIVE_WIN32 */
  int fd;        /**< EP_NATIVE_FD: a duplicate, which a successful import consumes. */
  void* address; /**< EP_NATIVE_POINTER */
} EpNativeHandle;

/** Memory to import. */
typedef struct EpMemoryRequest {
  const EpHandleType* type;
  EpNativeHandle native;
  size_t size_bytes;   /**< Of the whole allocation, greater than 0. */
  size_t offset_bytes; /**< Where the region starts, at most `size_bytes`. */
  bool* consumed;      /**< Set where the driver has taken the descriptor, whatever comes after. */
} EpMemoryRequest;

/** Direction of a copy. Host memory is pageable memory of the application or of ONNX Runtime. */
typedef enum EpCopyKind {
  EP_COPY_HOST_TO_DEVICE,
  EP_COPY_DEVICE_TO_HOST,
  EP_COPY_DEVICE_TO_DEVICE,
} EpCopyKind;

/** Identity and memory of a device. Strings live as long as the device. */
typedef struct EpDeviceInfo {
  const char* name;                    /**< For humans. */
  OrtHardwareDeviceType hardware_type; /**< How ONNX Runtime lists the hardware. */
  uint32_t hardware_vendor_id;         /**< PCI vendor id; 0 matches every vendor. */
  uint32_t hardware_device_id;         /**< PCI device id; used when ORT lists no such device. */
  const char* hardware_vendor;         /**< Vendor's name, for the same case. */
  bool has_uuid;
  uint8_t uuid[16]; /**< As the graphics APIs of the same machine report it. */
  bool has_luid;
  uint64_t luid;          /**< Windows' adapter id. */
  const char* pci_bus_id; /**< "0000:01:00.0", or null where it is not known. */
  OrtMemoryInfoDeviceType memory_device_type;
  uint32_t memory_device_id; /**< Distinguishes the devices of one driver. */
  bool host_access;          /**< The host can read and write tensors through their address. */
} EpDeviceInfo;

/** Finds the driver and its devices. A machine without any is a success with none. */
bool ep_driver_open(EpDriver** driver, EpError* error);
/** Ends the driver, whose streams and objects are gone. */
void ep_driver_close(EpDriver* driver);
/** How many devices there are. */
size_t ep_driver_device_count(const EpDriver* driver);
/** Device `index`, which is less than the count. */
EpDriverDevice* ep_driver_device(EpDriver* driver, size_t index);
/** Identity of `device`. */
const EpDeviceInfo* ep_driver_device_info(const EpDriverDevice* device);

/** Device memory of `bytes` > 0 bytes, aligned for every element type. Null when out of memory. */
void* ep_driver_alloc(EpDriverDevice* device, size_t bytes);
/** Releases `memory` once the work that streams of `device` now hold is done; does not block. */
void ep_driver_free(EpDriverDevice* device, void* memory);

/** A new stream; its owner releases it with ep_driver_stream_release(). */
bool ep_driver_stream_create(EpDriverDevice* device, EpDriverStream** stream, EpError* error);
/** Ends the use of `stream`; enqueued work is still done. Does not block. */
void ep_driver_stream_release(EpDriverStream* stream);
/** The handle that kernels get for `stream`; never null. */
void* ep_driver_stream_native(EpDriverStream* stream);
/** The stream of a handle that ep_driver_stream_native() gave, null if it is none of `device`. */
EpDriverStream* ep_driver_stream_from_native(EpDriverDevice* device, void* native);
/** Blocks until everything enqueued so far is done; reports the first failure among it. */
bool ep_driver_stream_flush(EpDriverStream* stream, EpError* error);
/** Copies `bytes` > 0 bytes; the ranges may be the same, and do not overlap otherwise. Without a
 *  `stream` the copy is done on return; with one it is enqueued, and host memory that is the source
 *  may change as soon as the call returns. */
bool ep_driver_copy(EpDriverDevice* device, EpDriverStream* stream, EpCopyKind kind,
                    void* destination, const void* source, size_t bytes, EpError* error);

/** A new event that nothing waits for; its owner releases it with ep_driver_event_release(). */
bool ep_driver_event_create(EpDriverDevice* device, EpDriverEvent** event, EpError* error);
/** Ends the use of `event`; enqueued waits for it still complete. */
void ep_driver_event_release(EpDriverEvent* event);
/** Enqueues on `stream`: from here on `event` has happened. */
bool ep_driver_event_record(EpDriverEvent* event, EpDriverStream* stream, EpError* error);
/** Enqueues on `stream` a wait for the latest record; returns at once if there is none. */
bool ep_driver_event_wait(EpDriverEvent* event, EpDriverStream* stream, EpError* error);
/** Blocks the calling thread until the latest record has happened. */
bool ep_driver_event_wait_on_host(EpDriverEvent* event, EpError* error);

/** Whether `device` can import memory of `type`. */
bool ep_driver_can_import_memory(EpDriverDevice* device, const EpHandleType* type);
/** Imports memory and maps it. A descriptor in the request is consumed on success; on failure only
 *  where EpMemoryRequest::consumed is set. */
bool ep_driver_import_memory(EpDriverDevice* device, const EpMemoryRequest* request,
                             EpDriverMemory** memory, EpError* error);
/** Address of the region's start, for kernels of the device. */
void* ep_driver_memory_address(const EpDriverMemory* memory);
/** Unmaps and releases `memory` as ep_driver_free() does, if need be not before the device is idle. */
void ep_driver_memory_release(EpDriverMemory* memory);

/** Whether `device` can import semaphores of `type`. */
bool ep_driver_can_import_semaphore(EpDriverDevice* device, const EpHandleType* type);
/** Imports a timeline semaphore. A descriptor in `native` is consumed on success only. */
bool ep_driver_import_semaphore(EpDriverDevice* device, const EpHandleType* type,
                                EpNativeHandle native, EpDriverSemaphore** semaphore,
                                EpError* error);
/** Ends the use of `semaphore`; enqueued waits and signals are still done. Does not block. */
void ep_driver_semaphore_release(EpDriverSemaphore* semaphore);
/** Enqueues a wait until the semaphore's value is at least `value`. */
bool ep_driver_semaphore_wait(EpDriverSemaphore* semaphore, EpDriverStream* stream, uint64_t value,
                              EpError* error);
/** Enqueues raising the semaphore's value to `value`. */
bool ep_driver_semaphore_signal(EpDriverSemaphore* semaphore, EpDriverStream* stream,
                                uint64_t value, EpError* error);

#if ORT_API_VERSION >= 25
/** Prepares `device` for work beside a graphics API; ORT_NOT_IMPLEMENTED where it cannot. Since
 *  1.25. */
bool ep_driver_graphics_init(EpDriverDevice* device, const OrtApi* api,
                             const OrtGraphicsInteropConfig* config, EpError* error);
/** Undoes ep_driver_graphics_init(). Since 1.25. */
bool ep_driver_graphics_deinit(EpDriverDevice* device, EpError* error);
#endif

#endif /* EP_DRIVER_H_ */
