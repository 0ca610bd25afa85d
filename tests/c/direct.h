/*
 * The EP library without ONNX Runtime between: its slots are called directly, on an OrtApi that
 * counts the statuses that the EP creates.
 */
#ifndef TESTS_C_DIRECT_H_
#define TESTS_C_DIRECT_H_

#include "client.h"

/** What the fake OrtApiBase claims and records. */
typedef struct FakeHost {
  const char* version; /**< GetVersionString's answer. */
  uint32_t newest;     /**< Newest API version that GetApi knows. */
  uint32_t asked[16];  /**< Versions that the EP asked for. */
  size_t asked_count;
  bool fail_tensors; /**< CreateTensorWithDataAndDeleterAsOrtValue fails. */
} FakeHost;

/** The only fake host, as slots have no context. */
extern FakeHost fake_host;

/** What is in the EP library. */
typedef struct Library {
  OrtStatus* (*create)(const char*, const OrtApiBase*, const OrtLogger*, OrtEpFactory**, size_t,
                       size_t*);
  OrtStatus* (*release)(OrtEpFactory*);
} Library;

/** A factory of the library, with a device and an importer. */
typedef struct Direct {
  Client client;
  Library library;
  OrtEpFactory* factory;
  OrtEpDevice* device;
  OrtExternalResourceImporterImpl* importer;
  OrtSyncStream* stream; /**< A real one. */
} Direct;

/** A stream that another EP made: SyncStream_GetImpl of the fake host knows it. */
extern OrtSyncStream* const foreign_stream;

/** A stream whose implementation, for the fake host, is `fake_stream_impl`. */
extern OrtSyncStream* const fake_stream;
extern OrtSyncStreamImpl* fake_stream_impl;

/** The base that claims `version` and has every API version up to `newest`. */
const OrtApiBase* fake_base(const Client* client, const char* version, uint32_t newest);
/** Statuses that the EP created and that are not yet released. */
size_t live_statuses(void);
/** Releases a status that the EP returned. */
void release_status(OrtStatus* status);
/** Expects that `status` is an error of `code` with `text`, that it is the only one, and releases
 *  it. */
void expect_refusal(OrtStatus* status, OrtErrorCode code, const char* text, const char* what);
/** Expects success. */
void expect_ok(OrtStatus* status, const char* what);

/** Opens everything, on a fake host of the release that is really loaded. */
void direct_open(Direct* direct, const char* ort_path, const char* ep_path);
/** Releases everything; nothing may be left. */
void direct_close(Direct* direct);

#endif /* TESTS_C_DIRECT_H_ */
