# For release builds -O2 instead of the default of CMake, -O3 -DNDEBUG, which is no faster here and takes longer to
# compile. It is a default as well: what a user, a preset or a toolchain file has chosen stays.
string(STRIP "${CMAKE_C_FLAGS_RELEASE_INIT}" release_flags)
if(release_flags STREQUAL "-O3 -DNDEBUG")
  set(CMAKE_C_FLAGS_RELEASE_INIT "-O2")
endif()
