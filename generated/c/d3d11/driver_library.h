/* Looks up a driver at run time. */
#ifndef DRIVER_LIBRARY_H_
#define DRIVER_LIBRARY_H_

#include <stdbool.h>
#include <stddef.h>

/** An entry point: the name that the library exports, and its place in the table of pointers. */
typedef struct DriverSymbol {
  const char* name;
  size_t slot;   /**< Offset of the function pointer in bytes. */
  bool optional; /**< Its absence leaves the pointer null, and is no failure. */
} DriverSymbol;

/**
 * Opens the first library of `file_names` (ended by null) that is there, and fills `table` with
 * the entry points that `symbols` (ended by a null name) lists. The library stays loaded for the
 * life of the process: drivers have threads of their own and do not survive their unloading.
 *
 * @return false when there is no such library or it lacks an entry point that is not optional.
 */
bool driver_library_open(const char* const* file_names, const DriverSymbol* symbols, void* table);

#endif /* DRIVER_LIBRARY_H_ */
