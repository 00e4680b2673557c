# Which processor the kernels are for: `processor`, by the name that headers of src/simd have after "// arch:", or "other",
# which has the portable ones alone.
# CMAKE_SYSTEM_PROCESSOR has one of the many names of a processor if it was set for a cross compilation. Else it is what
# `uname -m` says of this machine, or nothing, and what the compiler compiles for may be something else: 32 bits on a kernel
# of 64, or AArch64 by a compiler that was named without more. So there the compiler is asked.
include(CheckCSourceCompiles)

set(condition_x86_64 "defined __x86_64__ && defined __LP64__")
set(condition_aarch64 "defined __aarch64__ && defined __LP64__ && !defined __AARCH64EB__")
set(names_x86_64 "x86[-_]?64(-v[1-4])?|amd[-_]?64|x64|em64t|intel64")
set(names_aarch64 "aarch64|arm64.*|armv[89].*-a")

string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" name)
set(processor other)
set(hint "")
set(CMAKE_REQUIRED_QUIET ON)
set(compiled_for other)
foreach(known x86_64 aarch64)
  if(name MATCHES "^(${names_${known}})$")
    set(processor ${known})
  endif()
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # without linking: there may be no C library for that processor
  check_c_source_compiles("#if !(${condition_${known}})\n#error\n#endif\nint known;" ATT_COMPILED_FOR_${known})
  unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
  if(ATT_COMPILED_FOR_${known})
    set(compiled_for ${known})
  endif()
endforeach()

if(NOT CMAKE_CROSSCOMPILING OR name STREQUAL "" OR compiled_for STREQUAL other)
  if(NOT processor STREQUAL compiled_for)
    set(name "what ${CMAKE_C_COMPILER} compiles for")
  endif()
  set(processor ${compiled_for})
elseif(processor STREQUAL other)
  set(hint "; ${CMAKE_C_COMPILER} compiles for ${compiled_for}: if that is meant, set CMAKE_SYSTEM_PROCESSOR to it")
elseif(NOT processor STREQUAL compiled_for)
  message(WARNING "attend: CMAKE_SYSTEM_PROCESSOR is ${CMAKE_SYSTEM_PROCESSOR}, but ${CMAKE_C_COMPILER} compiles for ${compiled_for}")
endif()
if(processor STREQUAL other)
  message(STATUS "attend: no kernels for ${name}: the portable ones alone, which are slower${hint}")
endif()
