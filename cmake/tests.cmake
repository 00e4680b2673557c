# The tests: each .c file of tests/core, tests/model and tests/cli is a program, each .sh file of tests/cli gets the tool.
# Labels, in a line "// labels: long threads" of a .c file: long, begun first; slow, only ./dev test has it; trains, left
# out by CI under sanitizers; threads, what CI's thread sanitizer has besides the core; forks, not for that sanitizer;
# native, not under an emulator.
find_package(PkgConfig REQUIRED)
pkg_check_modules(cmocka REQUIRED IMPORTED_TARGET cmocka)

# att_test_programs(ROOM LIBRARY...): one program for each file of tests/ROOM, linked with these.
function(att_test_programs room)
  file(GLOB tests CONFIGURE_DEPENDS tests/${room}/*.c)
  foreach(file IN LISTS tests)
    get_filename_component(name ${file} NAME_WE)
    add_executable(test_${name} ${file})
    target_include_directories(test_${name} PRIVATE src tests ${PROJECT_BINARY_DIR}/generated)
    target_link_libraries(test_${name} PRIVATE ${ARGN} PkgConfig::cmocka)
    if(room STREQUAL cli) # these run the tool
      target_compile_definitions(test_${name} PRIVATE ATTEND_TOOL="$<TARGET_FILE:attend>")
      add_dependencies(test_${name} attend)
    endif()
    add_test(NAME ${room}/${name} COMMAND test_${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    file(STRINGS ${file} labels REGEX "^// labels: ")
    string(REGEX REPLACE "^// labels: " "" labels "${labels}")
    string(REPLACE " " ";" labels "${room} ${labels}")
    set_tests_properties(${room}/${name} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77)
    if(long IN_LIST labels)
      set_tests_properties(${room}/${name} PROPERTIES COST 1)
    endif()
  endforeach()
endfunction()

# att_generated_header(TARGET NAME): a header that cmake/NAME.awk makes for this test of what the public headers declare.
function(att_generated_header target name)
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.h)
  set(output ${PROJECT_BINARY_DIR}/generated/${name}.h)
  set(script ${PROJECT_SOURCE_DIR}/cmake/${name}.awk)
  add_custom_command(OUTPUT ${output} COMMAND awk -f ${script} ${headers} > ${output} DEPENDS ${script} ${headers} VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

function(att_test_tool)
  if(NOT CMAKE_C_FLAGS MATCHES -fsanitize) # a sanitizer has its own malloc
    add_library(fail_malloc MODULE tests/preload/fail_malloc.c)
    set_target_properties(fail_malloc PROPERTIES C_VISIBILITY_PRESET default)
    target_compile_definitions(test_out_of_memory PRIVATE FAIL_MALLOC="$<TARGET_FILE:fail_malloc>")
    add_dependencies(test_out_of_memory fail_malloc)
  endif()
  file(GLOB scripts CONFIGURE_DEPENDS tests/cli/*.sh)
  foreach(file IN LISTS scripts)
    get_filename_component(name ${file} NAME_WE)
    add_test(NAME cli/${name} COMMAND sh ${file} $<TARGET_FILE:attend> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(cli/${name} PROPERTIES LABELS cli SKIP_RETURN_CODE 77)
  endforeach()
  add_test(NAME readme COMMAND ${PROJECT_SOURCE_DIR}/tests/readme.sh $<TARGET_FILE_DIR:attend>)
  set_tests_properties(readme PROPERTIES LABELS slow SKIP_RETURN_CODE 77)
endfunction()

# The tree and what comes out of it.
function(att_test_tree)
  add_test(NAME layers COMMAND sh -c "awk -f cmake/layers.awk LAYERS $(find src app -name '*.[ch]')"
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  add_test(NAME limits COMMAND sh -c "awk -f cmake/without_comments.awk -f cmake/limits.awk \
           $(find src app include tests bench fuzz examples -name '*.[ch]' -o -name '*.cpp')"
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  add_test(NAME words COMMAND ${PROJECT_SOURCE_DIR}/tests/words.sh)
  add_test(NAME docs COMMAND ${PROJECT_SOURCE_DIR}/tests/docs.sh)
  add_test(NAME alone COMMAND ${PROJECT_SOURCE_DIR}/tests/alone.sh ${CMAKE_C_COMPILER})
  set_tests_properties(alone PROPERTIES LABELS slow COST 1)
  if(NOT CMAKE_C_FLAGS MATCHES -fsanitize)
    add_test(NAME libm COMMAND ${PROJECT_SOURCE_DIR}/tests/libm.sh $<TARGET_FILE:attend_static>)
    foreach(headers "attend attend.h attend_extend.h attend_learn.h attend_nn.h attend_util.h" "attend_model attend_language.h attend_model.h attend_recommend.h attend_text.h attend_vision.h")
      separate_arguments(headers)
      list(POP_FRONT headers library)
      list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/include/)
      add_test(NAME symbols/${library} COMMAND ${PROJECT_SOURCE_DIR}/tests/symbols.sh $<TARGET_FILE:${library}_shared>
                                               ${headers})
    endforeach()
    add_test(NAME cpp COMMAND ${PROJECT_SOURCE_DIR}/tests/cpp.sh $<TARGET_FILE_DIR:attend_shared>)
    set_tests_properties(cpp PROPERTIES LABELS slow SKIP_RETURN_CODE 77)
    add_test(NAME copies COMMAND ${PROJECT_SOURCE_DIR}/tests/copies.sh $<TARGET_FILE:attend_shared> ${CMAKE_C_COMPILER})
    add_test(NAME versions COMMAND ${PROJECT_SOURCE_DIR}/tests/versions.sh $<TARGET_FILE_DIR:attend_shared> ${CMAKE_C_COMPILER})
    add_test(NAME package COMMAND ${PROJECT_SOURCE_DIR}/tests/package.sh ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER})
    add_test(NAME subproject COMMAND ${PROJECT_SOURCE_DIR}/tests/subproject.sh ${CMAKE_C_COMPILER})
    set_tests_properties(package subproject PROPERTIES LABELS slow)
  endif()
endfunction()
