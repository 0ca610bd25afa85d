#include "ep_stream.h"

#include <stdlib.h>

#include "ep_config.h"

typedef struct EpStream {
  OrtSyncStreamImpl base;
  EpDevice* device;
  EpDriverStream* driver;
} EpStream;

typedef struct EpNotification {
  OrtSyncNotificationImpl base;
  EpDevice* device;
  EpDriverStream* producer; /* ONNX Runtime releases notifications before their stream. */
  EpDriverEvent* event;
} EpNotification;

static void ORT_API_CALL ep_notification_release(OrtSyncNotificationImpl* base) {
  EpNotification* notification = (EpNotification*)base;
  EpContext* context = notification->device->context;
  ep_driver_event_release(notification->event);
  free(notification);
  ep_context_release(context);
}

static OrtStatus* ORT_API_CALL ep_notification_activate(OrtSyncNotificationImpl* base) {
  EpNotification* notification = (EpNotification*)base;
  EpError error;
  ep_error_clear(&error);
  (void)ep_driver_event_record(notification->event, notification->producer, &error);
  return ep_status(notification->device->context->api, &error);
}

static OrtStatus* ORT_API_CALL ep_notification_wait_on_device(OrtSyncNotificationImpl* base,
                                                              OrtSyncStream* consumer) {
  EpNotification* notification = (EpNotification*)base;
  EpDriverStream* stream = NULL;
  EpError error;
  ep_error_clear(&error);
  if (ep_stream_of_device(notification->device, consumer, &stream, &error)) {
    (void)ep_driver_event_wait(notification->event, stream, &error);
  }
  return ep_status(notification->device->context->api, &error);
}

static OrtStatus* ORT_API_CALL ep_notification_wait_on_host(OrtSyncNotificationImpl* base) {
  EpNotification* notification = (EpNotification*)base;
  EpError error;
  ep_error_clear(&error);
  (void)ep_driver_event_wait_on_host(notification->event, &error);
  return ep_status(notification->device->context->api, &error);
}

static bool ep_notification_create(EpStream* stream, OrtSyncNotificationImpl** out,
                                   EpError* error) {
  EpNotification* notification = calloc(1, sizeof *notification);
  if (notification == NULL) {
    return ep_fail(error, ORT_FAIL, EP_NAME ": out of memory");
  }
  if (!ep_driver_event_create(stream->device->driver, &notification->event, error)) {
    free(notification);
    return false;
  }
  ep_context_retain(stream->device->context);
  notification->device = stream->device;
  notification->producer = stream->driver;
  notification->base.ort_version_supported = stream->device->context->stamp;
  notification->base.Release = ep_notification_release;
  notification->base.Activate = ep_notification_activate;
  notification->base.WaitOnDevice = ep_notification_wait_on_device;
  notification->base.WaitOnHost = ep_notification_wait_on_host;
  *out = &notification->base;
  return true;
}

static void ORT_API_CALL ep_stream_release(OrtSyncStreamImpl* base) {
  EpStream* stream = (EpStream*)base;
  EpContext* context = stream->device->context;
  ep_driver_stream_release(stream->driver);
  free(stream);
  ep_context_release(context);
}

static void* ORT_API_CALL ep_stream_get_handle(OrtSyncStreamImpl* base) {
  return ep_driver_stream_native(((EpStream*)base)->driver);
}

static OrtStatus* ORT_API_CALL ep_stream_create_notification(OrtSyncStreamImpl* base,
                                                             OrtSyncNotificationImpl** out) {
  EpStream* stream = (EpStream*)base;
  EpError error;
  ep_error_clear(&error);
  *out = NULL;
  (void)ep_notification_create(stream, out, &error);
  return ep_status(stream->device->context->api, &error);
}

static OrtStatus* ORT_API_CALL ep_stream_flush(OrtSyncStreamImpl* base) {
  EpStream* stream = (EpStream*)base;
  EpError error;
  ep_error_clear(&error);
  (void)ep_driver_stream_flush(stream->driver, &error);
  return ep_status(stream->device->context->api, &error);
}

static OrtStatus* ORT_API_CALL ep_stream_on_session_run_end(OrtSyncStreamImpl* base) {
  (void)base;
  return NULL;
}

OrtSyncStreamImpl* ep_stream_create(EpDevice* device, EpError* error) {
  EpStream* stream = calloc(1, sizeof *stream);
  if (stream == NULL) {
    (void)ep_fail(error, ORT_FAIL, EP_NAME ": out of memory");
    return NULL;
  }
  if (!ep_driver_stream_create(device->driver, &stream->driver, error)) {
    free(stream);
    return NULL;
  }
  ep_context_retain(device->context);
  stream->device = device;
  stream->base.ort_version_supported = device->context->stamp;
  stream->base.Release = ep_stream_release;
  stream->base.GetHandle = ep_stream_get_handle;
  stream->base.CreateNotification = ep_stream_create_notification;
  stream->base.Flush = ep_stream_flush;
  stream->base.OnSessionRunEnd = ep_stream_on_session_run_end;
  return &stream->base;
}

bool ep_stream_of_device(const EpDevice* device, const OrtSyncStream* stream,
                         EpDriverStream** driver_stream, EpError* error) {
  *driver_stream = NULL;
  if (stream == NULL) {
    return ep_fail_argument(error, "stream is null");
  }
  const OrtSyncStreamImpl* base = device->context->ep_api->SyncStream_GetImpl(stream);
  /* Only this library has this Release, so the rest is an EpStream. */
  if (base == NULL || base->Release != ep_stream_release) {
    return ep_fail_argument(error, "stream was not made by " EP_NAME);
  }
  const EpStream* own = (const EpStream*)base;
  if (own->device->info->memory_device_id != device->info->memory_device_id) {
    return ep_fail_argument(error, "stream is of device %u (%s), the call is for device %u (%s)",
                            (unsigned)own->device->info->memory_device_id, own->device->info->name,
                            (unsigned)device->info->memory_device_id, device->info->name);
  }
  *driver_stream = own->driver;
  return true;
}
