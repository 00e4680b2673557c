# What the tool is made of, for the programs and the Python package. Writes the lists of commands: each file app/cli/NAME.c is
# one of attend, and each app/cli/*/train_NAME.c and evaluate_NAME.c one of attend train and attend evaluate.
include(CheckSymbolExists)
check_symbol_exists(__GLIBC__ features.h ATT_HAS_GLIBC)
if(NOT ATT_HAS_GLIBC)
  message(FATAL_ERROR "the tool needs glibc; -DATT_TOOL=OFF builds the libraries, which do not")
endif()

file(GLOB cli_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/app/cli/*.c)
file(GLOB cli_room_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/app/cli/*/*.c)

# Appends to command_lists a list of the commands that files with a prefix have, in alphabetical order.
set(command_lists "")
function(att_list_commands list prefix)
  set(names "")
  foreach(file IN LISTS ARGN)
    get_filename_component(name ${file} NAME_WE)
    list(APPEND names ${name})
  endforeach()
  list(FILTER names INCLUDE REGEX "^${prefix}")
  list(SORT names)
  list(TRANSFORM names REPLACE "(.+)" "X(\\1)")
  list(JOIN names " \\\n    " rows)
  set(command_lists "${command_lists}#define ${list}(X) ${rows}\n" PARENT_SCOPE)
endfunction()
att_list_commands(CLI_COMMAND_LIST "" ${cli_files})
att_list_commands(CLI_TRAIN_LIST train_ ${cli_room_files})
att_list_commands(CLI_EVALUATE_LIST evaluate_ ${cli_room_files})

# X(NAME, TERMS) for each model that comes with attend. TERMS: for which an installation leaves it out; NULL: only the
# Python package does, if at all
set(rows "")
foreach(model IN LISTS free_models)
  list(APPEND rows "X(\"${model}\", NULL)")
endforeach()
foreach(model IN LISTS restricted_models)
  list(APPEND rows "X(\"${model}\", \"${restricted_${model}}\")")
endforeach()
list(JOIN rows " " rows)
string(APPEND command_lists "#define CLI_SHIPPED_LIST(X) ${rows}\n")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/cli_list.h @ONLY CONTENT
"/* Written by the build from the contents of app/cli and models/TERMS. */
@command_lists@")

include(cmake/chapters.cmake)

# attend_cli has what the commands, the programs that they start and the tests share. attend_commands are the commands but
# `explain`, `fetch` and `serve`: these are compiled where they are used, as they start programs or, as in the Python
# package, do not: with ATT_CHAPTERS_INSIDE, `explain` has the chapters beside it, without ATT_CURL, `fetch` has pip alone,
# and without ATT_HTTP, `serve` says what it needs.
list(FILTER cli_room_files EXCLUDE REGEX "/base/(main|tool)\\.c$")
list(FILTER cli_files EXCLUDE REGEX "/(explain|fetch|serve)\\.c$")
list(FILTER chapter_files EXCLUDE REGEX "/main\\.c$")
add_library(attend_cli STATIC ${cli_room_files})
target_include_directories(attend_cli PUBLIC app ${PROJECT_BINARY_DIR}/generated)
set(cli_library attend_model_static)
if(ATT_PYTHON_SYSTEM)
  if(ATT_TOOL OR ATT_TESTS)
    message(FATAL_ERROR "-DATT_PYTHON_SYSTEM=ON is for the Python package alone: -DATT_TOOL=OFF -DATT_TESTS=OFF")
  endif()
  pkg_check_modules(attend_installed REQUIRED IMPORTED_TARGET attend_model=${PROJECT_VERSION})
  set(cli_library PkgConfig::attend_installed)
endif()
target_link_libraries(attend_cli PUBLIC ${cli_library} PkgConfig::attend_jansson)
if(ATT_LIBEDIT)
  pkg_check_modules(attend_libedit QUIET IMPORTED_TARGET libedit)
  if(attend_libedit_FOUND)
    target_link_libraries(attend_cli PRIVATE PkgConfig::attend_libedit)
    set_property(SOURCE app/cli/base/line_editor.c tests/cli/language/chat_tool.c APPEND PROPERTY COMPILE_DEFINITIONS ATT_LIBEDIT)
  endif()
endif()
set_property(SOURCE app/cli/base/program.c APPEND PROPERTY COMPILE_DEFINITIONS
             ATT_LIBEXEC_FROM_PROGRAM="${libexec_from_program}")
add_library(attend_commands OBJECT app/cli/base/tool.c ${cli_files})
add_library(attend_chapters OBJECT ${chapter_files})
foreach(part attend_commands attend_chapters)
  target_link_libraries(${part} PUBLIC attend_cli)
endforeach()
list(JOIN sets " " cli_sets) # by rank, for `attend info`
target_compile_definitions(attend_commands PRIVATE CLI_INSTRUCTION_SETS="${cli_sets}")
