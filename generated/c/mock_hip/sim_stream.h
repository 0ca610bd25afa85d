/* Simulated streams: each does its tasks in order on a thread of its own. */
#ifndef SIM_STREAM_H_
#define SIM_STREAM_H_

#include "sim_gpu.h"

/** A piece of work on a stream. */
typedef struct SimTask {
  struct SimTask* next;
  void (*run)(struct SimTask* task);
} SimTask;

/** Enqueues `task`, allocated with malloc, which is freed after its run. */
GpuResult sim_stream_enqueue(GpuStream stream, SimTask* task, const char* call);
/** Whether work of `stream` is unfinished. */
bool sim_stream_is_busy(GpuStream stream);
/** Blocks until `stream` is idle. */
void sim_stream_wait(GpuStream stream);

#endif /* SIM_STREAM_H_ */
