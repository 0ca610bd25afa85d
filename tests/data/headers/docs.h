/** \file docs.h
 * \addtogroup Global
 * @{
 */
#include "common.h"

/** \brief A table.
 *
 * \since Version 1.22.
 */
struct FxDocumented {
  uint32_t version;  ///< trailing text, since it follows. \since Version 1.23

  /// \name Group
  /// @{

  /** \brief Makes one.
   *
   * \param[in] name What it is called.
   * \param[out]  out Where it goes.
   * \param[in,out] both Read and written.
   * \param plain No direction.
   *
   * \since Version 1.24.
   */
  ORT_API2_STATUS(Make, _In_ const char* name, _Outptr_ OrtValue** out,
                  _Inout_ int* both, int plain);

  /* \brief: A plain comment with commands in it.
   * \since Version 1.14
   */
  ORT_CLASS_RELEASE(Value);

  // \since Version 1.11 in a line comment that no tool reads as documentation
  ORT_API2_STATUS(Undocumented);

  /** \since 1.18 */

  void (*Spaced)(int a);
  /// @}
};

/** A comment that belongs to nothing, for a directive follows. \since Version 1.2 */
#define FX_BETWEEN 1
typedef int FxAfterDirective;

typedef enum FxDocEnum {
  FX_DOC_A,  ///< First. \since Version 1.20
  /** Second. \since Version 1.21 */
  FX_DOC_B,
} FxDocEnum;
/// @}
