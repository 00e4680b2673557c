# Writes the lists of commands: each file app/cli/NAME.c is one of attend, and each app/cli/*/train_NAME.c and evaluate_NAME.c
# one of attend train and attend evaluate.

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

# X(NAME, TERMS) for each model that an installation leaves out
set(rows "")
foreach(model IN LISTS restricted_models)
  list(APPEND rows "X(\"${model}\", \"${restricted_${model}}\")")
endforeach()
list(JOIN rows " " rows)
string(APPEND command_lists "#define CLI_RESTRICTED_LIST(X) ${rows}\n")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/cli_list.h @ONLY CONTENT
"/* Written by the build from the contents of app/cli and models/TERMS. */
@command_lists@")

# What "attend info" asks for: the names of the instruction sets, by rank.
list(JOIN sets " " cli_sets)
