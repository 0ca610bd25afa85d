/*
 * How the driver's devices appear in ONNX Runtime, and what their metadata tells an application.
 */
#ifndef EP_DEVICES_H_
#define EP_DEVICES_H_

#include "ep_context.h"

/** Identity of the device as the graphics APIs report it: 32 hexadecimal digits. */
#define EP_KEY_UUID "UUID"
/** Windows' adapter id: a decimal number, as ONNX Runtime writes it for hardware devices. */
#define EP_KEY_LUID "LUID"
/** Identity of the device within the EP. */
#define EP_KEY_DEVICE_ID "interop_device_id"
/** "map": the host may read and write tensors through their address; "none": it may not. */
#define EP_KEY_HOST_ACCESS "interop_host_access"
/** Handle types that can be imported, ONNX Runtime's names separated by commas. */
#define EP_KEY_MEMORY_TYPES "interop_memory_handle_types"
#define EP_KEY_SEMAPHORE_TYPES "interop_semaphore_types"
/** Absolute path of the EP's library, in UTF-8. */
#define EP_KEY_LIBRARY "interop_library_path"

#define EP_DEVICE_ID_CAPACITY 16
#define EP_UUID_CAPACITY 33

/** Writes the value of EP_KEY_DEVICE_ID for a device. */
void ep_device_id(const EpDeviceInfo* info, char text[EP_DEVICE_ID_CAPACITY]);

/** Writes a UUID as the value of EP_KEY_UUID is written. */
void ep_uuid_text(const uint8_t uuid[16], char text[EP_UUID_CAPACITY]);

/** Whether `options` of an application, which may be null, name the device by EP_KEY_UUID and
 *  EP_KEY_LUID, where they have them; else `error` names both. */
bool ep_device_is_named(const EpDeviceInfo* info, const OrtApi* api,
                        const OrtKeyValuePairs* options, EpError* error);

/** Offers the driver's devices: each on the hardware device that ONNX Runtime lists for it, and on
 *  one that the EP adds where ONNX Runtime lists none, as in containers. The parameters are those
 *  of OrtEpFactory::GetSupportedDevices; on failure no device is handed over. */
bool ep_devices_offer(EpContext* context, OrtEpFactory* factory,
                      const OrtHardwareDevice* const* hardware, size_t hardware_count,
                      OrtEpDevice** ep_devices, size_t max_ep_devices, size_t* ep_device_count,
                      EpError* error);

#endif /* EP_DEVICES_H_ */
