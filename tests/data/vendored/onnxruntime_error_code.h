// A copy in a binding's sources that somebody wrote from memory: one constant is missing, and so the
// values of all that follow it are one less than in the release.
#pragma once

typedef enum OrtErrorCode {
  ORT_OK = 0,
  ORT_INVALID_ARGUMENT = 1,
  ORT_NO_SUCHFILE = 2,
  ORT_NO_MODEL = 3,
  ORT_ENGINE_ERROR = 4,
  ORT_RUNTIME_EXCEPTION = 5,
  ORT_INVALID_PROTOBUF = 6,
  ORT_MODEL_LOADED = 7,
  ORT_NOT_IMPLEMENTED = 8,
  ORT_INVALID_GRAPH = 9,
  ORT_EP_FAIL = 10,
  ORT_MODEL_LOAD_CANCELED = 11,
  ORT_MODEL_REQUIRES_COMPILATION = 12,
  ORT_NOT_FOUND = 13,
  ORT_DEVICE_RESET = 14,
} OrtErrorCode;
