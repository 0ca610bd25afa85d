/* Part of ort-interop-gen: the API uses nothing of <assert.h>. */
#pragma once
