# What `cmake --install` puts where: headers, libraries, pkg-config files, the CMake package "attend".
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# att_install_library(NAME): NAME_static and NAME_shared, NAME.h, NAME.pc.
# Other CMake projects see attend::NAME (shared) and attend::NAME_static.
function(att_install_library name)
  set_target_properties(${name}_shared PROPERTIES EXPORT_NAME ${name})
  add_library(attend::${name} ALIAS ${name}_shared)
  add_library(attend::${name}_static ALIAS ${name}_static)
  install(TARGETS ${name}_static ${name}_shared EXPORT attend-targets)
  install(FILES include/${name}.h TYPE INCLUDE)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# The prefix as seen from the .pc files, which so stay right wherever the tree is moved to.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/attend)
install(EXPORT attend-targets NAMESPACE attend:: DESTINATION ${package_folder})
configure_package_config_file(cmake/attend-config.cmake.in attend-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(attend-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/attend-config.cmake ${CMAKE_BINARY_DIR}/attend-config-version.cmake
        DESTINATION ${package_folder})
