/* Part of ort-interop-gen: just enough of <stdlib.h> to read the ORT headers. */
#pragma once
#include <stddef.h>
