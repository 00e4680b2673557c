# What `cmake --install` puts where: headers, libraries, pkg-config files, the CMake package "attend".
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# att_install_library(NAME HEADER...): NAME_static and NAME_shared, include/HEADER..., NAME.pc.
# Other CMake projects see attend::NAME (shared) and attend::NAME_static.
function(att_install_library name)
  set_target_properties(${name}_shared PROPERTIES EXPORT_NAME ${name})
  add_library(attend::${name} ALIAS ${name}_shared)
  add_library(attend::${name}_static ALIAS ${name}_static)
  install(TARGETS ${name}_static ${name}_shared EXPORT attend-targets)
  list(TRANSFORM ARGN PREPEND include/ OUTPUT_VARIABLE headers)
  install(FILES ${headers} TYPE INCLUDE)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# The prefix as seen from the .pc files, which so stay right wherever the tree is moved to.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")

# The models that come with attend, as seen from a program that is installed with it (src/model/find.c).
file(RELATIVE_PATH data_from_program /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_DATADIR})

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/attend)
install(EXPORT attend-targets NAMESPACE attend:: DESTINATION ${package_folder})
configure_package_config_file(cmake/attend-config.cmake.in attend-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(attend-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/attend-config.cmake ${CMAKE_BINARY_DIR}/attend-config-version.cmake
        DESTINATION ${package_folder})

# att_install_tool(): the tool, and the manual pages and completions that it writes itself.
function(att_install_tool)
  install(TARGETS attend)
  install(DIRECTORY models DESTINATION ${CMAKE_INSTALL_DATADIR}/attend)
  set(pages "")
  foreach(page "attend.bash:--completion=bash:bash-completion/completions:attend"
               "attend.zsh:--completion=zsh:zsh/site-functions:_attend"
               "attend.fish:--completion=fish:fish/vendor_completions.d:attend.fish")
    string(REPLACE ":" ";" page ${page})
    list(POP_FRONT page file option folder name)
    add_custom_command(OUTPUT ${file} COMMAND attend help ${option} > ${file} DEPENDS attend VERBATIM)
    list(APPEND pages ${CMAKE_BINARY_DIR}/${file})
    install(FILES ${CMAKE_BINARY_DIR}/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} RENAME ${name})
  endforeach()
  set(man ${CMAKE_BINARY_DIR}/man1)
  add_custom_command(OUTPUT man.stamp COMMAND ${CMAKE_COMMAND} -E rm -rf ${man} COMMAND ${CMAKE_COMMAND} -E make_directory ${man}
                     COMMAND attend help --man-folder ${man} COMMAND ${CMAKE_COMMAND} -E touch man.stamp
                     DEPENDS attend VERBATIM)
  install(DIRECTORY ${man} DESTINATION ${CMAKE_INSTALL_DATADIR}/man)
  add_custom_target(pages ALL DEPENDS ${pages} man.stamp)
endfunction()
