# Compiles the kernels once per instruction set and writes the lists of what there is.
# A set is a header src/simd/NAME.h with comment lines "// rank:", "// arch:" and "// flags:".

file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/simd/*.h)
set(sets "")
foreach(header IN LISTS headers)
  file(STRINGS ${header} rank REGEX "^// rank:")
  if(rank)
    get_filename_component(name ${header} NAME_WE)
    file(STRINGS ${header} arch REGEX "^// arch:")
    file(STRINGS ${header} flags REGEX "^// flags:")
    string(REGEX REPLACE "^// [a-z]*: *" "" rank "${rank}")
    string(REGEX REPLACE "^// [a-z]*: *" "" arch "${arch}")
    string(REGEX REPLACE "^// [a-z]*: *" "" flags "${flags}")
    if(arch STREQUAL "any" OR arch STREQUAL CMAKE_SYSTEM_PROCESSOR)
      list(APPEND sets ${rank}:${name})
      string(REPLACE " " ";" flags_${name} "${flags}")
    endif()
  endif()
endforeach()
list(SORT sets)

# What is compiled per set: the kernels, and the stages of attention.
file(GLOB kernel_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernel/*.c)
list(FILTER kernel_files EXCLUDE REGEX "/(table|reference)\\.c$")
set(stage_files "")
set(kernel_list "")
set(stage_list "")
set(set_list "")
foreach(file IN LISTS kernel_files)
  get_filename_component(name ${file} NAME_WE)
  string(APPEND kernel_list " \\\n    X(${name}, isa)")
endforeach()
foreach(kind score modifier mask)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/attn/${kind}/*.c)
  list(APPEND stage_files ${files})
  string(APPEND stage_list "#define ATT_${kind}_LIST(X, isa)")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    string(APPEND stage_list " \\\n    X(${kind}, ${name}, isa)")
  endforeach()
  string(APPEND stage_list "\n")
endforeach()

set(simd_objects "")
set(detect_list "")
foreach(entry IN LISTS sets)
  string(REGEX REPLACE "^.*:" "" name ${entry})
  string(APPEND set_list " \\\n    X(${name})")
  string(APPEND detect_list "#include \"simd/${name}.h\"\n")
  add_library(simd_${name} OBJECT ${kernel_files} ${stage_files})
  target_compile_definitions(simd_${name} PRIVATE ATT_SIMD_NAME=${name} ATT_SIMD_HEADER="simd/${name}.h")
  target_compile_options(simd_${name} PRIVATE ${flags_${name}})
  target_include_directories(simd_${name} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src
                                                  ${CMAKE_BINARY_DIR}/generated)
  list(APPEND simd_objects $<TARGET_OBJECTS:simd_${name}>)
endforeach()

file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/att_lists.h @ONLY CONTENT
"/* Written by the build from the contents of src/simd, src/kernel and src/attn. */
#define ATT_SET_LIST(X)@set_list@
#define ATT_KERNEL_LIST(X, isa)@kernel_list@
@stage_list@")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/att_detect.h @ONLY CONTENT "@detect_list@")
