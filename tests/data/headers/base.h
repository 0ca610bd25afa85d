// What the drift tests change, one edit at a time.
#include "common.h"

ORT_RUNTIME_CLASS(FxHandle);
ORT_RUNTIME_CLASS(FxSession);

typedef enum FxKind {
  FX_KIND_NONE = 0,
  FX_KIND_MEMORY = 1,
  FX_KIND_SEMAPHORE = 2,
} FxKind;

#define FX_KIND_OLD FX_KIND_MEMORY
#define FX_LIMIT 16

typedef void(ORT_API_CALL* FxCallback)(_In_ void* state, size_t count);
typedef uint32_t FxFlags;

typedef struct FxDescriptor {
  uint32_t version;
  FxKind kind;
  void* native_handle;
  size_t size_bytes;
} FxDescriptor;

struct FxPlain {
  int32_t width;
  int32_t height;
  uint64_t flags;
};

struct FxHolder {
  uint8_t tag;
  struct FxPlain plain;
  uint8_t last;
};

typedef struct FxTable {
  /** \since Version 1.24. */
  ORT_API2_STATUS(Import, _In_ const FxDescriptor* desc, _Outptr_ OrtFxHandle** out);
  ORT_API2_STATUS(Export, _In_ const FxDescriptor* desc, _Outptr_ OrtFxHandle** out);
  ORT_API_T(bool, CanImport, FxKind kind, size_t size);
  ORT_CLASS_RELEASE(FxHandle);
  ORT_API2_STATUS(Attach, _In_opt_ OrtFxSession* session, _In_reads_(count) const int64_t* ids, size_t count);
  ORT_API_T(const char*, Name, _In_ const OrtFxHandle* handle);
} FxTable;

ORT_EXPORT const FxTable* ORT_API_CALL FxGetTable(uint32_t version) NO_EXCEPTION;
