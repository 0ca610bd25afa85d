// Case 27: what the model cannot take in, among what it can.
#include "common.h"

struct FxBefore { int a; };

struct FxTable {
  ORT_API2_STATUS(First, _In_ int a);
  ORT_API2_STATUS(Broken, _In_ FxNowhere* a);
  ORT_API2_STATUS(Last, _In_ OrtValue* a);
};

typedef FxMissing FxAlias;

struct FxBits {
  unsigned int low : 3;
  unsigned int high : 5;
};

struct __attribute__((packed)) FxPacked {
  char a;
  int b;
};

struct FxIncomplete {
  struct FxNeverDefined inner;
  int after;
};

extern int fx_variable;

typedef enum FxBadEnum { FX_BAD = FX_UNKNOWN_CONSTANT, FX_GOOD = 3 } FxBadEnum;

struct FxAfter { double b; };
