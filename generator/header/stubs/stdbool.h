/* Part of ort-interop-gen: just enough of <stdbool.h> to read the ORT headers. */
#pragma once
#define bool _Bool
#define true 1
#define false 0
