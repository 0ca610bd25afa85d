// Cases 23 and 25: markers in every place, macros that wrap whole declarations, C++ parts.
#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void(ORT_API_CALL* FxCallback)(_In_ void* state, _In_reads_(count) const int64_t* values, size_t count);
typedef _Ret_maybenull_ void* (*FxPlainCallback)(_In_opt_ void* user_context) NO_EXCEPTION;

typedef struct FxTable {
#ifdef __cplusplus
  FxTable() : version{} {}
#endif
  uint32_t version;
  ORT_API2_STATUS(Create, _In_ const char* name, _Outptr_ OrtValue** out);
  ORT_API2_STATUS(Fill, _Inout_ OrtValue* value, _In_reads_(a * (b + 1)) const uint8_t* data, size_t a, size_t b);
  ORT_API2_STATUS(Empty);
  ORT_API_T(bool, Test, _In_ const OrtValue*, int);
  ORT_API_T(const char*, Name, void);
  ORT_CLASS_RELEASE(Value);
  const OrtValue*(ORT_API_CALL* Get)(uint32_t version)NO_EXCEPTION;
  OrtStatus*(ORT_API_CALL* Checked)(_In_ const char* message)NO_EXCEPTION __attribute__((nonnull));
  __attribute__((warn_unused_result)) int (*Leading)(_In_ int a, ...);
  void(ORT_API_CALL* ForEach)(_In_ void (*fn)(void* state, size_t index), _In_opt_ void* state);
  ORT_API2_STATUS(Open, _In_ const ORTCHAR_T* path, _Out_ long* size);
  void (*Names)(_In_ const char* names[], _Out_writes_(4) int fixed[4]);
} FxTable;

ORT_EXPORT const FxTable* ORT_API_CALL FxGetTable(void) NO_EXCEPTION;
_Success_(return == 0) _Check_return_ _Ret_maybenull_ OrtStatusPtr ORT_API_CALL FxAppend(_In_ OrtValue* value, int id)
    NO_EXCEPTION ORT_MUST_USE_RESULT;

static inline int FxHelper(int a) { return a ? FxHelper(a - 1) : 0; }

#ifdef __cplusplus
}
#endif
