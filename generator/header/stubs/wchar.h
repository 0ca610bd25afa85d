/* Part of ort-interop-gen: just enough of <wchar.h> to read the ORT headers. */
#pragma once
#include <stddef.h>
