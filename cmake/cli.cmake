# Writes the list of subcommands: each file app/cli/NAME.c is one.

file(GLOB cli_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/app/cli/*.c)
file(GLOB cli_room_files CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/app/cli/base/*.c ${PROJECT_SOURCE_DIR}/app/cli/draw/*.c
     ${PROJECT_SOURCE_DIR}/app/cli/bench/*.c ${PROJECT_SOURCE_DIR}/app/cli/fetch/*.c
     ${PROJECT_SOURCE_DIR}/app/cli/train/*.c ${PROJECT_SOURCE_DIR}/app/cli/evaluate/*.c)
set(cli_list "")
foreach(file IN LISTS cli_files)
  get_filename_component(name ${file} NAME_WE)
  string(APPEND cli_list " \\\n    X(${name})")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/cli_list.h @ONLY CONTENT
"/* Written by the build from the contents of app/cli. */
#define CLI_COMMAND_LIST(X)@cli_list@
")

# What "attend info" asks for: the names of the instruction sets, by rank.
list(JOIN sets " " cli_sets)
