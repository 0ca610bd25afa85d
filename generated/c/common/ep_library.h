/*
 * Where the EP's own library is, so that an EP finds what lies beside it: ONNX Runtime does not tell.
 */
#ifndef EP_LIBRARY_H_
#define EP_LIBRARY_H_

/** The absolute path of the library that this code is in, in UTF-8; null where it cannot be found
 *  out. The caller frees it. */
char* ep_library_path(void);

#endif /* EP_LIBRARY_H_ */
