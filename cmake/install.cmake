# What `cmake --install` puts where, with ATT_INSTALL: headers, libraries, pkg-config files, the CMake package "attend",
# the tool with its manual pages, completions and models of free terms, and the programs that it starts.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The path of an install folder as seen from another one. If both are below the prefix, that is so wherever the tree is
# moved to; if one is absolute, it is so where they were configured to be.
function(att_relative from to out)
  cmake_path(ABSOLUTE_PATH from BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} NORMALIZE)
  cmake_path(ABSOLUTE_PATH to BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} NORMALIZE)
  file(RELATIVE_PATH path ${from} ${to})
  string(REGEX REPLACE "/$" "" path "${path}")
  set(${out} "${path}" PARENT_SCOPE)
endfunction()

# Programs that the tool starts, which nobody starts by name
set(libexec ${CMAKE_INSTALL_LIBEXECDIR}/attend)
att_relative(${CMAKE_INSTALL_BINDIR} ${libexec} libexec_from_program)

# The models that come with attend, as seen from a program that is installed with it (src/model/find_model.c).
att_relative(${CMAKE_INSTALL_BINDIR} ${CMAKE_INSTALL_DATADIR} data_from_program)
att_relative(${libexec} ${CMAKE_INSTALL_DATADIR} data_from_libexec)

# The models that come with attend, by models/TERMS: free_models, restricted_models, and restricted_NAME, the latter's
# terms. A model without a line there is an error, and a line without a model where all are installed: what the Python
# package is built from has not all.
function(att_read_terms)
  file(GLOB folders CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/models models/*)
  list(REMOVE_ITEM folders README.md TERMS)
  file(STRINGS models/TERMS lines REGEX "^[^#]")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS models/TERMS)
  set(free "")
  set(restricted "")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^([^: ]+): (free|restricted): ([^\";]+)$")
      message(FATAL_ERROR "models/TERMS: \"${line}\" is not NAME: free or restricted: LICENSE")
    endif()
    list(APPEND ${CMAKE_MATCH_2} ${CMAKE_MATCH_1})
    set(restricted_${CMAKE_MATCH_1} "${CMAKE_MATCH_3}" PARENT_SCOPE)
  endforeach()
  set(named ${free} ${restricted})
  set(without_terms ${folders})
  set(without_folder ${named})
  list(REMOVE_ITEM without_terms ${named})
  list(REMOVE_ITEM without_folder ${folders})
  if(without_terms OR (without_folder AND ATT_INSTALL))
    message(FATAL_ERROR "models/TERMS has the terms of ${named}, but models/ has ${folders}")
  endif()
  set(free_models ${free} PARENT_SCOPE)
  set(restricted_models ${restricted} PARENT_SCOPE)
endfunction()
att_read_terms()

# The folders of the .pc files
set(pc_prefix ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  att_relative(${CMAKE_INSTALL_LIBDIR}/pkgconfig . pc_prefix)
  set(pc_prefix "\${pcfiledir}/${pc_prefix}")
endif()
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY "\${prefix}" OUTPUT_VARIABLE pc_libdir)
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_INCLUDEDIR BASE_DIRECTORY "\${prefix}" OUTPUT_VARIABLE pc_includedir)

# att_install_library(NAME HEADER...): NAME_static and NAME_shared, include/HEADER..., NAME.pc.
# Other CMake projects see attend::NAME (shared) and attend::NAME_static, in this build as in an installed one.
function(att_install_library name)
  set_target_properties(${name}_shared PROPERTIES EXPORT_NAME ${name})
  add_library(attend::${name} ALIAS ${name}_shared)
  add_library(attend::${name}_static ALIAS ${name}_static)
  if(ATT_INSTALL)
    install(TARGETS ${name}_static ${name}_shared EXPORT attend-targets)
    list(TRANSFORM ARGN PREPEND include/ OUTPUT_VARIABLE headers)
    install(FILES ${headers} TYPE INCLUDE)
    configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endif()
endfunction()

# att_install_reference(HEADER...): manual pages of what these declare, section 3. They are left out where there is no awk,
# and where only some targets were built.
function(att_install_reference)
  if(NOT ATT_INSTALL)
    return()
  endif()
  find_program(ATT_AWK awk)
  mark_as_advanced(ATT_AWK)
  if(NOT ATT_AWK)
    message(STATUS "attend: no manual pages of the libraries: awk, which makes them, is missing")
    return()
  endif()
  set(man ${PROJECT_BINARY_DIR}/man3)
  set(files ${ARGN})
  list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/include/)
  list(PREPEND files ${PROJECT_SOURCE_DIR}/LAYERS)
  set(scripts blocks narrow_code reference)
  list(TRANSFORM scripts REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/cmake/\\1.awk")
  list(TRANSFORM scripts PREPEND "-f;" OUTPUT_VARIABLE programs)
  add_custom_command(OUTPUT man3.stamp COMMAND ${CMAKE_COMMAND} -E rm -rf ${man}
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${man}
                     COMMAND ${ATT_AWK} -v folder=${man} ${programs} ${files}
                     COMMAND ${CMAKE_COMMAND} -E touch man3.stamp DEPENDS ${scripts} ${files} VERBATIM)
  install(DIRECTORY ${man} DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
  add_custom_target(attend_reference ALL DEPENDS man3.stamp)
endfunction()

# att_install_package(): the CMake package
function(att_install_package)
  if(NOT ATT_INSTALL)
    return()
  endif()
  set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/attend)
  install(EXPORT attend-targets NAMESPACE attend:: DESTINATION ${folder})
  configure_package_config_file(cmake/attend-config.cmake.in attend-config.cmake INSTALL_DESTINATION ${folder})
  write_basic_package_version_file(attend-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/attend-config.cmake ${PROJECT_BINARY_DIR}/attend-config-version.cmake
          DESTINATION ${folder})
endfunction()

# att_install_tool(): the tool and its models, and the manual pages and completions that it writes itself.
function(att_install_tool)
  if(NOT ATT_INSTALL)
    return()
  endif()
  install(TARGETS attend)
  install(TARGETS attend-explain RUNTIME DESTINATION ${libexec})
  foreach(program attend-fetch attend-serve)
    if(TARGET ${program})
      install(TARGETS ${program} RUNTIME DESTINATION ${libexec})
    endif()
  endforeach()
  set(models ${CMAKE_INSTALL_DATADIR}/attend/models)
  install(FILES models/README.md models/TERMS DESTINATION ${models})
  foreach(model IN LISTS free_models)
    install(DIRECTORY models/${model} DESTINATION ${models})
  endforeach()
  foreach(model IN LISTS restricted_models)
    install(DIRECTORY models/${model} DESTINATION ${models} COMPONENT attend_restricted_models EXCLUDE_FROM_ALL)
    install(CODE "message(STATUS \"Left out: ${model} (restricted: ${restricted_${model}}), which the component \"
                                 \"attend_restricted_models installs\")")
  endforeach()
  if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    message(STATUS "attend: no manual pages and no completions: the tool, which writes them, does not run here")
    return()
  endif()
  set(pages "")
  foreach(page "attend.bash:--completion=bash:bash-completion/completions:attend"
               "attend.zsh:--completion=zsh:zsh/site-functions:_attend"
               "attend.fish:--completion=fish:fish/vendor_completions.d:attend.fish")
    string(REPLACE ":" ";" page ${page})
    list(POP_FRONT page file option folder name)
    add_custom_command(OUTPUT ${file} COMMAND attend help ${option} > ${file} DEPENDS attend VERBATIM)
    list(APPEND pages ${PROJECT_BINARY_DIR}/${file})
    install(FILES ${PROJECT_BINARY_DIR}/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} RENAME ${name})
  endforeach()
  set(man ${PROJECT_BINARY_DIR}/man1)
  add_custom_command(OUTPUT man.stamp COMMAND ${CMAKE_COMMAND} -E rm -rf ${man} COMMAND ${CMAKE_COMMAND} -E make_directory ${man}
                     COMMAND attend help --man-folder ${man} COMMAND ${CMAKE_COMMAND} -E touch man.stamp
                     DEPENDS attend VERBATIM)
  install(DIRECTORY ${man} DESTINATION ${CMAKE_INSTALL_MANDIR})
  add_custom_target(attend_pages ALL DEPENDS ${pages} man.stamp)
endfunction()
