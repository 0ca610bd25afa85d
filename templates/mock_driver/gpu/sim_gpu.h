/* What the simulations of CUDA and HIP share, and what each adds. */
#ifndef SIM_GPU_H_
#define SIM_GPU_H_

#include "mock_record.h"
#include "mock_sim.h"

/* Results that the simulation gives. Their values are those of both drivers. */
#define SIM_INVALID_VALUE ((GpuResult)1)
#define SIM_OUT_OF_MEMORY ((GpuResult)2)
#define SIM_INVALID_DEVICE ((GpuResult)101)
#define SIM_INVALID_CONTEXT ((GpuResult)201)
#define SIM_INVALID_HANDLE ((GpuResult)400)
#define SIM_ALREADY_REGISTERED ((GpuResult)712)
#define SIM_NOT_SUPPORTED ((GpuResult)801)

/* How many devices can be simulated. */
#define SIM_MAX_DEVICES 8

/** Whether the calling thread has what the driver's calls need to be current; if not, that is an
 *  offence of `call`. The backend's. */
bool sim_has_context(const char* call);
/** The device that is current on the calling thread, which has one. The backend's. */
int sim_current_device(void);
/** Whether what is made now lives as long as the device is used. The backend's. */
bool sim_context_lasts(void);
/** To be called by what blocks until the device is idle, and holds up other threads' calls as long:
 *  an offence of `call` if a stream of the device waits, or will, for a semaphore of somebody else's. */
void sim_block(const char* call);
/** Memory of the device's; the same as sim_MemAlloc(). */
GpuResult sim_allocate(GpuAddress* out, size_t bytes, const char* call);
/** Enqueues a copy. `host` is the host's side, null if there is none. */
GpuResult sim_copy(void* destination, const void* source, size_t bytes, const void* host,
                   GpuStream stream);
/** How many devices there are. */
int sim_device_count(void);

#endif /* SIM_GPU_H_ */
