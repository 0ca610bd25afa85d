/* Part of ort-interop-gen: just enough of <stddef.h> to read the ORT headers. */
#pragma once
#ifdef _WIN32
typedef unsigned long long size_t;
typedef long long ptrdiff_t;
typedef unsigned short wchar_t;
#else
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef int wchar_t;
#endif
#define NULL ((void*)0)
