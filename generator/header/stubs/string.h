/* Part of ort-interop-gen: just enough of <string.h> to read the ORT headers. */
#pragma once
#include <stddef.h>
