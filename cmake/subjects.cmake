# Writes the list of the subjects of models: each file src/SUBJECT/SUBJECT_subject.c defines att_subject_SUBJECT.

file(GLOB subject_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*/*_subject.c)
set(subject_list "")
foreach(file IN LISTS subject_files)
  get_filename_component(name ${file} NAME_WE)
  string(REGEX REPLACE "_subject$" "" name ${name})
  string(APPEND subject_list " \\\n    X(${name})")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/att_subjects.h @ONLY CONTENT
"/* Written by the build: the subjects of models, by the files src/SUBJECT/SUBJECT_subject.c. */
#define ATT_SUBJECT_LIST(X)@subject_list@
")
