// Case 26: declarations that differ by platform.
#include "common.h"

struct FxPaths {
  ORT_API2_STATUS(Open, _In_ const ORTCHAR_T* path);
#ifdef _WIN32
  ORT_API2_STATUS(OpenHandle, _In_ void* handle);
#else
  ORT_API2_STATUS(OpenFd, int fd);
#endif
  long length;
  wchar_t letter;
};
