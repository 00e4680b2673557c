# Part of ./dev: the tests, also with faults, under load, by an emulator, and everything

#: test [CTEST ARGS]     all tests, on the real model too (installs and fetches what is missing)
do_test() {
    need "${test_packages[@]}" "${python_packages[@]}"
    build_in release -DATT_TESTS=ON -DATT_PYTHON=ON -DPython_EXECUTABLE=/usr/bin/python3
    fetch_models build/attend
    ATTEND_REQUIRE_MODEL=1 test_in build "$@"
}

#: torture [SECONDS]     each command while memory, calls, files, disks and signals fail it, for so long (600)
do_torture() {
    need "${test_packages[@]}" python3 strace
    build_in release -DATT_TESTS=ON
    python3 tests/torture/torture.py build/attend build/libfail_malloc.so --seconds "${1:-600}" "${@:2}"
}

#: load [REQUESTS]       attend serve with so many requests (10000) of 64 clients, with slow, killed and too large ones
do_load() {
    need "${test_packages[@]}"
    build_in release -DATT_TESTS=ON
    ATTEND_LOAD="${1:-10000}" build/test_serve_load
}

#: neon [CTEST ARGS]     the core's tests built for AArch64, under qemu (installs both)
do_neon() {
    [ "$(uname -m)" != aarch64 ] || fail "neon: this machine has it itself; ./dev test uses it"
    need cmake ninja-build pkg-config gcc-aarch64-linux-gnu libc6-dev-arm64-cross libcmocka-dev:arm64 qemu-user
    # "native": what the emulator cannot do, as threads in a child of a process that has some, or takes minutes for
    with_labels -LE 'slow|native|portable'
    build_in neon -DATT_TESTS=ON "${cmake_options[@]:0:2}"
    ATTEND_ISA=neon ATTEND_TEST_LESS=1 test_in build-neon -LE 'slow|native|portable' "$@"
}

#: valgrind [PATTERN]    the tests of which the name has PATTERN, but not the slow ones, under valgrind
do_valgrind() {
    need "${test_packages[@]}" valgrind
    build_in release -DATT_TESTS=ON # has symbols, and takes a tenth of the time that debug takes
    local file name
    for file in $(grep -sL '^// labels:.*slow' tests/*/*"${1:-}"*.c tests/cli/*/*"${1:-}"*.c); do
        name=$(basename "$file" .c)
        [ -x "build/test_$name" ] || continue # no test, but what one preloads or compiles
        title "valgrind $name"
        ATTEND_TEST_LESS=1 valgrind -q --error-exitcode=9 --leak-check=full "build/test_$name"
    done
}

#: all                   everything: also what .ci/run leaves out (hours)
do_all() {
    do_tools
    do_test
    do_check
    do_site
    do_neon
    do_asan
    do_tsan
    do_msan
    do_fuzz
    do_torture
    do_load
    do_valgrind
}
