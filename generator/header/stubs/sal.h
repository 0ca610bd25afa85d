/* Part of ort-interop-gen: SAL words stay as they are, so that they can be recorded. */
#pragma once
