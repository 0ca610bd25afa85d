// Case 22 and 32: how C numbers enumerators.
#include "common.h"

typedef enum FxPlain { FX_A, FX_B, FX_C = 5, FX_D, FX_E = FX_C, FX_F } FxPlain;

typedef enum FxSigned {
  FX_MINUS = -2,
  FX_AFTER_MINUS,
  FX_BY_ANOTHER = FX_MINUS,
  FX_TOP_BIT = 1 << 31,
  FX_AFTER_TOP_BIT,
  FX_NOT = ~0,
  FX_PRECEDENCE = 1 | 2 << 3,
  FX_DIVIDED = -7 / 2,
  FX_REMAINDER = -7 % 2,
  FX_CHOICE = 3 > 2 ? 'A' : '\n',
  FX_OCTAL = 017,
} FxSigned;

// Above INT_MAX: GCC stores it in an unsigned int, MSVC keeps int and wraps.
typedef enum FxUnsigned { FX_HIGH = 0x80000000u, FX_HIGHER } FxUnsigned;

// Without a typedef, as the API has one.
enum FxUntagged { FX_UNTAGGED = 0x10 };

#define FX_OLD_NAME FX_D
#define FX_NUMBER (1 << 4)
#define FX_EMPTY
#define FX_CALL(x) x
#define FX_FILE __FILE__
