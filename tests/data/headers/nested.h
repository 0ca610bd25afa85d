// Case 24: unions, nested structs, arrays, mutual references, use before definition.
#include "common.h"

struct FxList;
typedef struct FxList FxList;
typedef struct FxLater FxLater;
ORT_RUNTIME_CLASS(FxHidden);

struct FxNode {
  FxList* owner;
  struct FxNode* next;
  FxLater* later;
};

struct FxList {
  struct FxNode first;
  uint16_t tag;
  union {
    uint64_t total;
    uint32_t parts[3];
    struct {
      uint8_t low;
      uint64_t high;
    } pair;
  } value;
  char name[5];
  long on_windows_shorter;
  size_t last;
};

struct FxLater {
  bool flag;
  double number;
  wchar_t wide;
  const char* const* names;
  int (*compare)(const void*, const void* right);
};

typedef union FxEither {
  uint8_t byte;
  uint64_t word;
  char text[9];
} FxEither;

struct FxEnumField {
  uint8_t lead;
  enum { FX_INNER_A, FX_INNER_B = 7 } inner;
  FxEither either;
};
