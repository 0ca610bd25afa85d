#include <stdlib.h>

#include "ep_devices.h"
#include "gpu_device.h"

/* Takes over `native`; null, with `native` given up, when memory is short. */
static GpuContext* gpu_context_create(EpDriverDevice* device, void* native, bool graphics,
                                      EpError* error) {
  GpuContext fresh = {.device = device, .native = native, .graphics = graphics};
  GpuContext* context = malloc(sizeof *context);
  if (context == NULL) {
    gpu_backend_release(&fresh);
    (void)ep_out_of_memory(error);
    return NULL;
  }
  *context = fresh;
  atomic_init(&context->references, 1);
  return context;
}

void gpu_context_retain(GpuContext* context) {
  atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
}

void gpu_context_drop(GpuContext* context) {
  if (context != NULL &&
      atomic_fetch_sub_explicit(&context->references, 1, memory_order_acq_rel) == 1) {
    gpu_backend_release(context);
    free(context);
  }
}

GpuContext* gpu_context_begin(EpDriverDevice* device, bool primary, GpuScope* scope,
                              EpError* error) {
  ep_mutex_lock(&device->mutex);
  GpuContext* context = primary ? NULL : device->graphics;
  void* native = NULL;
  if (context == NULL && device->primary == NULL && gpu_backend_retain(device, &native, error)) {
    device->primary = gpu_context_create(device, native, false, error);
  }
  if (context == NULL) {
    context = device->primary;
  }
  if (context != NULL) {
    gpu_context_retain(context);
  }
  ep_mutex_unlock(&device->mutex);
  if (context != NULL && !gpu_enter(context, scope, error)) {
    gpu_context_drop(context);
    return NULL;
  }
  return context;
}

bool gpu_context_end(GpuContext* context, GpuScope* scope, bool good) {
  (void)gpu_leave(scope, good);
  if (!good) {
    gpu_context_drop(context);
  }
  return good;
}

void* gpu_object_begin(EpDriverDevice* device, bool primary, size_t bytes, GpuScope* scope,
                       EpError* error) {
  GpuContext** object = calloc(1, bytes);
  if (object == NULL) {
    (void)ep_out_of_memory(error);
    return NULL;
  }
  *object = gpu_context_begin(device, primary, scope, error);
  if (*object == NULL) {
    free(object);
    return NULL;
  }
  return object;
}

void* gpu_object_end(void* object, GpuScope* scope, bool good) {
  if (gpu_context_end(*(GpuContext**)object, scope, good)) {
    return object;
  }
  free(object);
  return NULL;
}

bool gpu_enter_to_release(GpuContext* context, GpuScope* scope) {
  EpError ignored;
  return gpu_enter(context, scope, &ignored) || gpu_enter(context, scope, &ignored);
}

#if ORT_API_VERSION >= 25

bool ep_driver_graphics_init(EpDriverDevice* device, const OrtApi* api,
                             const OrtGraphicsInteropConfig* config, EpError* error) {
  if (config->graphics_api != ORT_GRAPHICS_API_D3D12 &&
      config->graphics_api != ORT_GRAPHICS_API_VULKAN) {
    return ep_fail_argument(error, "OrtGraphicsInteropConfig: graphics_api is %d, which is unknown",
                            (int)config->graphics_api);
  }
  if (!ep_device_is_named(&device->info, api, config->additional_options, error)) {
    return false;
  }
  ep_mutex_lock(&device->mutex);
  bool good =
      !device->graphics_on ||
      ep_fail_argument(error, "ep_device %s has graphics interop already", device->info.name);
  device->graphics_on = true;
  ep_mutex_unlock(&device->mutex);
  if (!good) {
    return false;
  }
  void* native = NULL;
  GpuContext* context = NULL;
  good = gpu_backend_graphics(device, api, config, &native, error);
  if (good && native != NULL) {
    context = gpu_context_create(device, native, true, error);
    good = context != NULL;
  }
  ep_mutex_lock(&device->mutex);
  device->graphics_on = good;
  device->graphics = context;
  ep_mutex_unlock(&device->mutex);
  return good;
}

bool ep_driver_graphics_deinit(EpDriverDevice* device, EpError* error) {
  ep_mutex_lock(&device->mutex);
  GpuContext* context = device->graphics;
  bool good = device->graphics_on ||
              ep_fail_argument(error, "ep_device %s has no graphics interop", device->info.name);
  device->graphics = NULL;
  device->graphics_on = false;
  ep_mutex_unlock(&device->mutex);
  gpu_context_drop(context);
  return good;
}

#endif
