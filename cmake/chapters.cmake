# Writes the list of chapters of `attend explain`: the files of app/explain with a line "// order: N", by N. The
# file two_words.c has chapter_two_words, and its name is two-words.

file(GLOB chapter_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/app/explain/*.c)
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
set(chapter_list "")
foreach(chapter IN LISTS chapters)
  string(REGEX REPLACE "^[0-9]*:" "" name "${chapter}")
  string(REPLACE "_" "-" title "${name}")
  string(APPEND chapter_list " X(${name}, \"${title}\")")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/explain_chapters.h @ONLY CONTENT
"/* Written by the build from the contents of app/explain. */
#define CHAPTER_LIST(X)@chapter_list@
")

# The figures of the chapter fixed-context: each object of runs/compare.jsonl, a line each, as an initializer in C.
set(compare_file ${PROJECT_SOURCE_DIR}/runs/compare.jsonl)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${compare_file})
file(READ ${compare_file} compare_rows)
string(REGEX REPLACE "\"([a-z_]+)\": " ".\\1 = " compare_rows "${compare_rows}")
string(REPLACE "}\n" "}, \\\n    " compare_rows "${compare_rows}")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/compare_rows.h @ONLY CONTENT
"/* Written by the build from runs/compare.jsonl. */
#define COMPARE_ROWS @compare_rows@
")

# The log of the chapter recommendation: each purchase of examples/shop.txt, as an initializer {customer, item} in C.
set(shop_file ${PROJECT_SOURCE_DIR}/examples/shop.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shop_file})
file(STRINGS ${shop_file} shop_lines)
set(shop_rows "")
foreach(line IN LISTS shop_lines)
  string(REPLACE " " ";" words "${line}")
  list(POP_FRONT words customer)
  string(APPEND shop_rows " \\\n   ")
  foreach(word IN LISTS words)
    string(APPEND shop_rows " {\"${customer}\", \"${word}\"},")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/shop_rows.h @ONLY CONTENT
"/* Written by the build from examples/shop.txt. */
#define SHOP_ROWS@shop_rows@
")
