# Checks the ONNX Runtime headers of a build against the spec that its bindings were generated from.
#
#   include(OrtInterop)
#   ort_interop_check_header(<target> HEADER <file or folder> [FAIL_ON <severity>] [SPEC_DIR <folder>]
#                            [CONFIG <file>] [BASELINE <file>])
#
# Before <target> is built, and again whenever a header beside HEADER changes, `ort-interop-gen check`
# runs; the build fails with file and line if something as bad as FAIL_ON (default: source) is found.
# The tool is looked for in PATH; set ORT_INTEROP_GEN to name another one.

include_guard(GLOBAL)
cmake_minimum_required(VERSION 3.20)

function(ort_interop_check_header target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;FAIL_ON;SPEC_DIR;CONFIG;BASELINE" "")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ort_interop_check_header: unknown argument '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT TARGET "${target}")
    message(FATAL_ERROR "ort_interop_check_header: '${target}' is not a target")
  endif()
  if(NOT arg_HEADER)
    message(FATAL_ERROR "ort_interop_check_header: give HEADER, an onnxruntime_c_api.h or its folder")
  endif()
  get_filename_component(header "${arg_HEADER}" ABSOLUTE)
  if(IS_DIRECTORY "${header}")
    set(header "${header}/onnxruntime_c_api.h")
  endif()
  if(NOT EXISTS "${header}")
    message(FATAL_ERROR "ort_interop_check_header: there is no '${header}'")
  endif()
  find_program(ORT_INTEROP_GEN ort-interop-gen DOC "The drift checker (pip install ort-interop-gen)")
  if(NOT ORT_INTEROP_GEN)
    message(FATAL_ERROR "ort_interop_check_header: ort-interop-gen was not found; "
                        "install it with pip, or set ORT_INTEROP_GEN")
  endif()

  if(NOT arg_FAIL_ON)
    set(arg_FAIL_ON source)
  endif()
  set(options --header "${header}" --fail-on "${arg_FAIL_ON}")
  set(inputs "${header}")
  foreach(name IN ITEMS CONFIG BASELINE)
    if(arg_${name})
      get_filename_component(path "${arg_${name}}" ABSOLUTE)
      string(TOLOWER "--${name}" option)
      list(APPEND options "${option}" "${path}")
      list(APPEND inputs "${path}")
    endif()
  endforeach()
  if(arg_SPEC_DIR)
    get_filename_component(path "${arg_SPEC_DIR}" ABSOLUTE)
    list(APPEND options --spec-dir "${path}")
    file(GLOB specs CONFIGURE_DEPENDS "${path}/*.yaml")
    list(APPEND inputs ${specs})
  endif()
  get_filename_component(folder "${header}" DIRECTORY)
  file(GLOB headers CONFIGURE_DEPENDS "${folder}/onnxruntime_*.h")

  # A header that is gone changes no dependency that is left: the list of them is one more.
  set(list "${CMAKE_CURRENT_BINARY_DIR}/${target}-ort-headers.txt")
  string(REPLACE ";" "\n" lines "${headers}")
  file(CONFIGURE OUTPUT "${list}" CONTENT "${lines}\n" @ONLY)

  set(stamp "${CMAKE_CURRENT_BINARY_DIR}/${target}-ort-header.stamp")
  add_custom_command(
    OUTPUT "${stamp}"
    COMMAND "${ORT_INTEROP_GEN}" check ${options} --format gcc
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS ${inputs} ${headers} "${list}"
    COMMENT "Checking ${header}"
    VERBATIM)
  add_custom_target("${target}-ort-header" DEPENDS "${stamp}")
  add_dependencies("${target}" "${target}-ort-header")
endfunction()
