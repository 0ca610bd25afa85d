/*
 * What an application may put into OrtGraphicsInteropConfig::additional_options. All are optional.
 * Since 1.25.
 */
#ifndef GPU_INTEROP_H_
#define GPU_INTEROP_H_

/** The application's GPU, in the form that the EP device's metadata has: 32 hexadecimal digits. If
 *  it is another GPU than the EP device's, initialisation fails and names both. */
#define GPU_OPTION_UUID "UUID"
/** The same by Windows' adapter id, a decimal number. */
#define GPU_OPTION_LUID "LUID"
/** "0": do not share the GPU's graphics queue (CUDA in graphics), even where the driver can; use
 *  the plain context. Any other value, or none: share it where the driver can. CUDA only. */
#define GPU_OPTION_CIG "cig"

#endif /* GPU_INTEROP_H_ */
