// What the other fixtures share: the platform macros and a release, in the style of the C API.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define ORT_API_VERSION 24

#ifndef _MSC_VER
#define _In_
#define _In_opt_
#define _Out_
#define _Outptr_
#define _Inout_
#define _Ret_maybenull_
#define _Check_return_
#define _Frees_ptr_opt_
#define _In_reads_(X)
#define _Out_writes_(X)
#define _Success_(X)
#else
#include <specstrings.h>
#endif

#ifdef _WIN32
#define ORT_API_CALL __stdcall
#define ORT_MUST_USE_RESULT
#define ORTCHAR_T wchar_t
#define ORT_EXPORT __declspec(dllimport)
#else
#define ORT_API_CALL
#define ORT_MUST_USE_RESULT __attribute__((warn_unused_result))
#define ORTCHAR_T char
#define ORT_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
#define NO_EXCEPTION noexcept
#else
#define NO_EXCEPTION
#endif

#define ORT_RUNTIME_CLASS(X) \
  struct Ort##X;             \
  typedef struct Ort##X Ort##X

ORT_RUNTIME_CLASS(Status);
ORT_RUNTIME_CLASS(Value);
typedef OrtStatus* OrtStatusPtr;

#define ORT_API2_STATUS(NAME, ...) \
  _Check_return_ _Ret_maybenull_ OrtStatusPtr(ORT_API_CALL* NAME)(__VA_ARGS__) NO_EXCEPTION ORT_MUST_USE_RESULT
#define ORT_API_T(RETURN_TYPE, NAME, ...) RETURN_TYPE(ORT_API_CALL* NAME)(__VA_ARGS__) NO_EXCEPTION
#define ORT_CLASS_RELEASE(X) void(ORT_API_CALL * Release##X)(_Frees_ptr_opt_ Ort##X * input)
