/** \file
 * A header whose comments have each fault once, beside what is right.
 */
#pragma once
#include "../headers/common.h"

ORT_RUNTIME_CLASS(FxImporter);
ORT_RUNTIME_CLASS(FxHandle);
ORT_RUNTIME_CLASS(FxKeyValues);

/** \addtogroup Global
 * @{
 */

/** \addtogroup Global
 * @{
 */
/** \brief What is imported. */
typedef enum FxKind {
  FX_KIND_NONE = 0,  ///< Nothing, see ::FX_KIND_MEMORY
  FX_KIND_MEMORY = 1,
} FxKind;
/// @}

/** \brief Options.
 *
 * The level is that of ::SetLogLevel() and is overridden by ::RunSetLogLevel(). See FxApi::SetLogLevel
 * and `::NotLooked()`, which is code, and Ort::Session, which is of another header.
 * Keys look like "ep.<ep_name>.key", or \<escaped\>, or <b>bold</b> & `vector<int>`.
 */
typedef struct FxOptions {
  uint32_t version;
} FxOptions;

typedef struct FxApi {
  /** \brief An old slot, from before slots said since when. */
  ORT_API2_STATUS(Oldest, _In_ const FxOptions* options);

  /** \brief Sets a level.
   *
   * \param[in] level From 0 to 4.
   * \param[in] object What it is set on, an opaque object.
   *
   * \since Version 1.22.
   */
  ORT_API2_STATUS(SetLogLevel, int level, _Inout_ OrtFxHandle* object);

  /** \brief Releases one.
   *
   * \param[in] importer May be null.
   *
   * \since Version 1.24.
   */
  ORT_CLASS_RELEASE(FxImporter);

  /** \brief Releases one.
   *
   * \param[in] input May be null.
   *
   * \since Version 1.24.
   */
  ORT_CLASS_RELEASE(FxHandle);

  /** \brief Reads all entries.
   *
   * \param[out] out The entries.
   *
   * \since Version 1.24.
   */
  ORT_API2_STATUS(GetEntries, _Outptr_ OrtFxKeyValues** config_entries);

  /** \brief Makes one.
   *
   * \param[out] kind Its kind.
   * \param[in] kind Its kind, again.
   * \param[in] flags Bits.
   * \param[in] result Where it goes.
   *
   * \since Version 1.23.
   */
  ORT_API2_STATUS(Make, _In_ const FxKind* kind, int flags, size_t count, _Outptr_ OrtFxHandle** result);

  /** \brief Says nothing of releases. */
  ORT_API2_STATUS(Undated, int plain);

  /** \brief From the future.
   * \since Version 1.40.
   */
  ORT_API2_STATUS(Future, int plain);

  /// \brief A slot that is documented in lines. See ::GetEntries.
  /// \param[in] handle A handle.
  /// \param[in] wrong Not there.
  /// \since Version 1.24.
  ORT_API2_STATUS(InLines, _In_ const OrtFxHandle* handle);
} FxApi;
/// @}
/// @}
