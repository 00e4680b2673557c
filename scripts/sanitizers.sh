# Part of ./dev: sanitizers and fuzzers

#: asan [CTEST ARGS]     the tests, with fewer of the like shapes, under the address and undefined-behavior sanitizers;
#:                       with arguments for the scalar and the best instruction set alone
do_asan() {
    need "${test_packages[@]}"
    with_labels "$@"
    build_tool
    fetch_models build/attend
    [ $# -eq 0 ] && cmake_options+=(-DATT_SETS=) || cmake_options+=("-DATT_SETS=$(best_sets)")
    build_in asan "${cmake_options[@]}"
    UBSAN_OPTIONS=print_stacktrace=1 ATTEND_REQUIRE_MODEL=1 ATTEND_TEST_LESS=1 test_in build-asan "$@"
}

#: tsan [CTEST ARGS]     likewise under the thread sanitizer; threads do the same on each instruction set: the best one
do_tsan() {
    need "${test_packages[@]}"
    with_labels "$@"
    build_tool
    fetch_models build/attend
    build_in tsan "${cmake_options[@]}" "-DATT_SETS=$(best_sets)"
    ATTEND_ISA=$(build/attend info | sed -n 's/^instruction set *//p') ATTEND_REQUIRE_MODEL=1 ATTEND_TEST_LESS=1 \
        test_in build-tsan "$@"
}

#: msan [CTEST ARGS]     the core's tests under clang's memory sanitizer: nothing depends on memory never written
do_msan() {
    need "${test_packages[@]}"
    need_clang
    with_labels "$@"
    build_in msan -DATT_TESTS=ON "${cmake_options[@]:0:2}"
    # Only C: of most vector instructions it reports any lane that was never written, also those that are not used.
    ATTEND_ISA=scalar ATTEND_TEST_LESS=1 test_in build-msan "$@"
}

# fuzz_one TARGET SECONDS: what it prints goes to a file, of which one sees the end if something was found.
fuzz_one() {
    local name=${1##*/fuzz_}
    local log=build-fuzz/$name.log
    mkdir -p "build-fuzz/found/$name"
    if "$1" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -dict=fuzz/json.dict \
        -artifact_prefix="build-fuzz/$name-" "build-fuzz/found/$name" "fuzz/corpus/$name" >"$log" 2>&1; then
        echo "$name: nothing found"
    else
        tail -n 60 "$log"
        say "fuzz $name: see above; $log has all of it"
        return 1
    fi
}

#: fuzz [SECONDS]        each fuzz target for so long (30), as many at once as there are processors
do_fuzz() {
    need "${build_packages[@]}"
    need_clang
    build_in fuzz
    export -f fuzz_one say
    printf '%s\0' build-fuzz/fuzz_* |
        xargs -0 -n 1 -P "$(nproc)" bash -c 'fuzz_one "$1" "$0"' "${1:-30}"
}
