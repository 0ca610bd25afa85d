/*
 * Numbers that an application gives by name, as text.
 */
#ifndef EP_OPTIONS_H_
#define EP_OPTIONS_H_

#include <stddef.h>

#include "ep_error.h"

/** What an option's text is, and what it becomes. Numbers are decimal, or hexadecimal with 0x. */
typedef enum EpOptionKind {
  EP_OPTION_HANDLE, /**< A number that is a pointer's value and not 0: uintptr_t. */
  EP_OPTION_INDEX,  /**< A number up to 0xffffffff: uint32_t. */
  EP_OPTION_FLAG,   /**< 0 or 1: bool. */
} EpOptionKind;

/** A row of a table of options, which one without a key ends. */
typedef struct EpOption {
  const char* key;
  EpOptionKind kind;
  size_t place; /**< Of the value in the struct of all values. */
} EpOption;

/** Reads those of `options` that are among `pairs` (null for none) into the struct `values`, whose
 *  other members stay; `*given` becomes their number, `*absent` one of the others or null. A message
 *  names the option at fault. */
bool ep_options_read(const EpOption* options, const OrtApi* api, const OrtKeyValuePairs* pairs,
                     void* values, size_t* given, const char** absent, EpError* error);

#endif /* EP_OPTIONS_H_ */
