#include "ep_stream.h"

#include <stdlib.h>

#include "ep_config.h"

typedef struct EpStream EpStream;

struct EpStream {
  OrtSyncStreamImpl base;
  EpDevice* device;
  EpDriverStream* driver;
  EpStreamGroup* group; /* Null for a stream that no session made. */
  EpStream* next;       /* In the group. */
};

/* Counted: its provider and each of its streams use it. */
struct EpStreamGroup {
  EpMutex mutex;
  size_t users;
  EpStream* streams;
};

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
    return ep_out_of_memory(error);
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

EpStreamGroup* ep_stream_group_create(EpError* error) {
  EpStreamGroup* group = calloc(1, sizeof *group);
  if (group == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  ep_mutex_init(&group->mutex);
  group->users = 1;
  return group;
}

/* Ends a use of `group`, and takes `stream` out of it unless that is null. */
static void ep_stream_group_leave(EpStreamGroup* group, const EpStream* stream) {
  ep_mutex_lock(&group->mutex);
  EpStream** link = &group->streams;
  while (*link != NULL && *link != stream) {
    link = &(*link)->next;
  }
  if (*link != NULL) {
    *link = stream->next;
  }
  bool last = --group->users == 0;
  ep_mutex_unlock(&group->mutex);
  if (last) {
    ep_mutex_destroy(&group->mutex);
    free(group);
  }
}

static void ep_stream_group_join(EpStreamGroup* group, EpStream* stream) {
  ep_mutex_lock(&group->mutex);
  stream->next = group->streams;
  group->streams = stream;
  ++group->users;
  ep_mutex_unlock(&group->mutex);
}

void ep_stream_group_release(EpStreamGroup* group) {
  if (group != NULL) {
    ep_stream_group_leave(group, NULL);
  }
}

bool ep_stream_group_flush(EpStreamGroup* group, EpError* error) {
  bool good = true;
  ep_mutex_lock(&group->mutex);
  for (const EpStream* stream = group->streams; stream != NULL && good; stream = stream->next) {
    good = ep_driver_stream_flush(stream->driver, error);
  }
  ep_mutex_unlock(&group->mutex);
  return good;
}

static void ORT_API_CALL ep_stream_release(OrtSyncStreamImpl* base) {
  EpStream* stream = (EpStream*)base;
  EpContext* context = stream->device->context;
  if (stream->group != NULL) {
    ep_stream_group_leave(stream->group, stream);
  }
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

OrtSyncStreamImpl* ep_stream_create(EpDevice* device, EpStreamGroup* group, EpError* error) {
  EpStream* stream = calloc(1, sizeof *stream);
  if (stream == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  if (!ep_driver_stream_create(device->driver, &stream->driver, error)) {
    free(stream);
    return NULL;
  }
  ep_context_retain(device->context);
  stream->device = device;
  stream->group = group;
  if (group != NULL) {
    ep_stream_group_join(group, stream);
  }
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
