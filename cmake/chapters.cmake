# Writes the list of chapters of `attend explain`: the files of app/cli/explain with a line "// order: N", by N.

file(GLOB chapter_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/app/cli/explain/*.c)
set(chapters "")
foreach(file IN LISTS chapter_files)
  file(STRINGS ${file} order REGEX "^// order:")
  if(order)
    get_filename_component(name ${file} NAME_WE)
    string(REGEX REPLACE "^// order: *" "" order "${order}")
    list(APPEND chapters ${order}:${name})
  endif()
endforeach()
list(SORT chapters COMPARE NATURAL)
list(TRANSFORM chapters REPLACE "^[0-9]*:(.*)$" "X(\\1)")
list(JOIN chapters " " chapter_list)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/explain_chapters.h @ONLY CONTENT
"/* Written by the build from the contents of app/cli/explain. */
#define CHAPTER_LIST(X) @chapter_list@
")
