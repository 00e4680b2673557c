#!/bin/sh
# Is libattend good as a part of another CMake project, compiled with that project's flags, installed to folders other than
# the usual ones, and for processors of any name? One build of the core, with the portable kernels alone, does for all.
# usage: tests/subproject.sh CC
set -eu
cc=$1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/parent" "$work/consumer"

fail() {
    echo "$1"
    shift
    cat "$@" /dev/null
    exit 1
}

# configure SOURCE BUILD [OPTION...]: what CMake says goes to BUILD.log
configure() {
    source=$1 build=$2
    shift 2
    cmake -S "$source" -B "$build" -DCMAKE_C_COMPILER="$cc" "$@" >"$build.log" 2>&1 ||
        fail "cmake -S $source $* fails:" "$build.log"
}

# Attend's targets have no names that a project would choose: this one has them, and functions, folders and settings that
# would be in the way.
cat >"$work/parent/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.14)
project(parent LANGUAGES C)
set(CMAKE_C_STANDARD 99)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY \${CMAKE_BINARY_DIR}/bin)
set(CMAKE_UNITY_BUILD ON)
set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_compile_options(-ffast-math)
foreach(name uninstall pages models simd_scalar test_attention example_attention)
  add_custom_target(\${name})
endforeach()
include(FetchContent)
FetchContent_Declare(attend SOURCE_DIR "$root")
FetchContent_MakeAvailable(attend)
configure_file("$root/examples/attention.c" program.c COPYONLY)
foreach(kind "" _static)
  add_executable(program\${kind} \${CMAKE_BINARY_DIR}/program.c)
  target_link_libraries(program\${kind} PRIVATE attend::attend\${kind})
endforeach()
install(TARGETS program)
get_directory_property(options COMPILE_OPTIONS)
message(STATUS "parent: \${CMAKE_BUILD_TYPE} | \${CMAKE_C_FLAGS_RELEASE} | \${CMAKE_C_STANDARD} | \${options}")
END

# expect WHAT COMMAND...: attention's middle line is the published context vector.
expect() {
    what=$1
    shift
    "$@" >"$work/out" 2>&1 || true
    grep -q '^0.3990 0.3854 0.8610$' "$work/out" || fail "$what: $* says:" "$work/out"
    echo "$what: works"
}

flags="-O0 -DNDEBUG -g1"
configure "$work/parent" "$work/build" -DATT_MODEL=OFF -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE="$flags" \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=loongarch64
grep -q "attend: no kernels for loongarch64: the portable ones alone, which are slower" "$work/build.log" ||
    fail "portable kernels: nothing says so:" "$work/build.log"
grep -qF "parent: Release | $flags | 99 | -ffast-math" "$work/build.log" ||
    fail "attend has changed its parent's settings:" "$work/build.log"
awk -v flags=" $flags " -v root="$root" '
    /"command":/ && index($0, "-c " root "/src/") {
        files++
        if (!index($0, flags) || $0 ~ /DNDEBUG.* -O/ || $0 !~ /-ffast-math.* -fno-fast-math/ || $0 !~ / -std=c11/) {
            print
            wrong = 1
        }
    }
    END { exit wrong || !files }' "$work/build/compile_commands.json" || fail "these are not compiled with $flags alone"
cmake --build "$work/build" --parallel >"$work/log" 2>&1 || fail "the parent does not build:" "$work/log"
expect "subproject, shared" "$work/build/bin/program"
expect "subproject, static" "$work/build/bin/program_static"
cmake --install "$work/build" --prefix "$work/usr" >"$work/log" || fail "the parent is not installed:" "$work/log"
[ "$(find "$work/usr" -type f)" = "$work/usr/bin/program" ] || fail "installed beside the parent: $(find "$work/usr" -type f)"
echo "subproject: flags, settings and install rules are the parent's"

# The CMake package and the .pc file know the folders, relative and absolute ones.
cat >"$work/consumer/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.14)
project(consumer LANGUAGES C)
find_package(attend 0.3 REQUIRED)
add_executable(program "$root/examples/attention.c")
target_link_libraries(program PRIVATE attend::attend_static)
END
consume() {
    what=$1 libraries=$2 pc=$2/pkgconfig
    rm -rf "$work/consumed"
    configure "$work/consumer" "$work/consumed" -Dattend_DIR="$libraries/cmake/attend"
    cmake --build "$work/consumed" >"$work/log" 2>&1 || fail "$what: the CMake package does not work:" "$work/log"
    expect "$what, CMake package" "$work/consumed/program"
    # shellcheck disable=SC2046
    $cc "$root/examples/attention.c" $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs attend) \
        -o "$work/program"
    expect "$what, pkg-config" env LD_LIBRARY_PATH="$libraries" "$work/program"
}
configure "$work/parent" "$work/build" -DATT_INSTALL=ON -DCMAKE_INSTALL_PREFIX=/opt/attend \
    -DCMAKE_INSTALL_INCLUDEDIR=include/attend-0.2 -DCMAKE_INSTALL_LIBDIR=lib/some/where
cmake --build "$work/build" >"$work/log" 2>&1 || fail "the manual pages are not built:" "$work/log"
DESTDIR="$work/stage" cmake --install "$work/build" >"$work/log" || fail "not installed:" "$work/log"
mv "$work/stage/opt/attend" "$work/moved"
[ -f "$work/moved/include/attend-0.2/attend.h" ] || fail "headers are not in include/attend-0.2"
pages=$work/moved/share/man/man3
[ -f "$pages/att_attention.3" ] && [ ! -f "$pages/att_sentence_embed.3" ] || fail "not the manual pages of libattend alone"
consume "other folders, moved" "$work/moved/lib/some/where"
configure "$work/parent" "$work/build" -DCMAKE_INSTALL_PREFIX="$work/absolute" \
    -DCMAKE_INSTALL_INCLUDEDIR="$work/headers" -DCMAKE_INSTALL_LIBDIR="$work/libraries"
cmake --install "$work/build" >"$work/log" || fail "not installed:" "$work/log"
consume "absolute folders" "$work/libraries"

# The whole of attend: its programs know where the models are, and the tool where the program is that it starts.
if pkg-config --exists "jansson >= 2.14" libutf8proc libpcre2-8 zlib libjpeg libpng; then
    while read -r programs libexec data from_program from_libexec started; do
        configure "$work/parent" "$work/whole" -DATT_TOOL=ON -DATT_INSTALL=ON -DCMAKE_INSTALL_PREFIX=/opt/attend \
            -DCMAKE_INSTALL_BINDIR="$programs" -DCMAKE_INSTALL_LIBEXECDIR="$libexec" -DCMAKE_INSTALL_DATADIR="$data"
        for path in "DATA_FROM_PROGRAM=$from_program" "DATA_FROM_LIBEXEC=$from_libexec" "LIBEXEC_FROM_PROGRAM=$started"; do
            grep -q "ATT_${path%=*}=[\\\"]*${path#*=}[\\\"]" "$work/whole/compile_commands.json" ||
                fail "$programs, $libexec, $data: not $path"
        done
    done <<END
libexec/attend/bin libexec lib/data ../../../lib/data ../../lib/data ..
/opt/programs /opt/started /opt/data ../data ../../data ../started/attend
/opt/attend/bin libexec share ../share ../../share ../libexec/attend
END
    echo "the whole: models and programs are found from wherever the tool is"
fi

# What a processor is called in other places: are its kernels compiled? Not those of a name that only begins alike.
mkdir "$work/processors"
cat >"$work/processors/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(processors LANGUAGES C)
set(CMAKE_CROSSCOMPILING ON)
foreach(case x86_64=x86_64 AMD64=x86_64 amd64=x86_64 x86-64=x86_64 X64=x86_64 aarch64=aarch64 AArch64=aarch64 ARM64=aarch64
             arm64=aarch64 armv8-a=aarch64 i686=other armv7l=other armv8l=other aarch64_be=other riscv64=other ppc64le=other)
  string(REPLACE "=" ";" case \${case})
  list(POP_FRONT case CMAKE_SYSTEM_PROCESSOR)
  include("$root/cmake/processor.cmake")
  if(NOT processor STREQUAL case)
    message(FATAL_ERROR "\${CMAKE_SYSTEM_PROCESSOR} is taken for \${processor}")
  endif()
endforeach()
set(CMAKE_SYSTEM_PROCESSOR "")
include("$root/cmake/processor.cmake")
message(STATUS "without a name: \${processor}")
END
configure "$work/processors" "$work/named"
for name in i686 armv7l armv8l aarch64_be riscv64 ppc64le; do
    grep -q "no kernels for $name: the portable ones alone" "$work/named.log" || fail "nothing says so:" "$work/named.log"
done
configure "$root" "$work/cross" -DATT_MODEL=OFF -DCMAKE_SYSTEM_NAME=Linux # and no word of a processor: the compiler's
built=$(sed -n 's/.*attend_simd_\([a-z0-9]*\)[.]dir.*/\1/p' "$work/cross/compile_commands.json" | sort -u | tr '\n' ' ')
case $(sed -n 's/^-- without a name: //p' "$work/named.log") in
x86_64) [ "$built" = "amx avx2 avx512 avx512bf16 scalar " ] ;;
aarch64) [ "$built" = "neon scalar " ] ;;
*) [ "$built" = "scalar " ] ;;
esac || fail "without CMAKE_SYSTEM_PROCESSOR there are kernels for $built" "$work/cross.log"
echo "processors: known by any of their names, and without one"
