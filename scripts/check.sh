# Part of ./dev: format, warnings, layers, words and limits, and lists of the source files

# Files of ours whose path matches an extended regular expression, each ended by a zero byte.
sources() {
    find . \( -path './build*' -o -path ./.git \) -prune -o -type f -regextype egrep -regex "$1" -print0
}

# Files of code, also that of the build, the checks and ./dev.
code_files() { sources '[.]/(.*[.](c|h|cpp|cmake|awk|py|sh)|(.*/)?CMakeLists.txt|dev)'; }

# Those that clang-format formats.
formatted() { sources '.*[.](c|h|cpp)' | grep -zv '_table[.]h$'; }

#: format                format all C and C++ as .clang-format says
do_format() {
    need clang-format-14
    formatted | xargs -0 clang-format-14 -i
}

# clang's warnings, without making objects and programs, of what ./dev fuzz does not compile: that
# has src and app, but kernels for the scalar set alone.
clang_warnings() {
    cmake --preset clang -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DATT_TESTS=ON -DATT_BENCH=ON >build/clang.log &&
        cmake --build build-clang --target generated/prototypes.h generated/struct_sizes.h >>build/clang.log ||
        { cat build/clang.log; fail "cmake --preset clang failed"; }
    sed -n 's/^ *"command": "\(.*\)",*$/\1/p' build-clang/compile_commands.json |
        grep 'attend_simd_[^s]\| -c [^ ]*/\(tests\|examples\|bench\)/' |
        sed 's/\\\(.\)/\1/g; s/ -o [^ ]* -c / -fsyntax-only -c /' >build-clang/commands
    (cd build-clang && xargs -d '\n' -n 1 -P "$(nproc)" sh -c <commands) || fail "clang has warnings"
    echo "none in $(wc -l <build-clang/commands) files"
}

# What ./dev test does as well. Each check returns by itself: bash ignores errors in a function behind which || stands.
check_tree() {
    title "layers"
    find src app -name '*.[ch]' -exec awk -f cmake/layers.awk LAYERS {} + || return
    sh tests/circles.sh || return
    echo "no room includes what it may not, and no files use each other's functions in a circle"

    title "words"
    sh tests/words.sh || return
    echo "no word is used that docs/GLOSSARY.md bans"

    title "English"
    tests/english.sh || return
    echo "comments, messages and documents keep the rules of CONTRIBUTING.md that need no reader"

    title "limits"
    code_files | xargs -0 awk -f cmake/without_comments.awk -f cmake/limits.awk || return
    echo "no file, function or struct is too long"

    title "documents"
    tests/docs.sh || return
    echo "name only files, tests and identifiers that exist"
}

#: check [--after-test]  the quick ones: layers, limits, words, documents, format, warnings, every instruction set;
#:                       after ./dev test and before ./dev fuzz without what these do: on each set only tests that
#:                       open the best one, and clang's warnings of what ./dev fuzz does not compile
do_check() {
    local tested=false
    [ "${1:-}" != --after-test ] || tested=true
    need "${test_packages[@]}"
    $tested || check_tree

    title "format"
    if command -v clang-format-14 >/dev/null; then
        formatted | xargs -0 clang-format-14 --dry-run -Werror
        echo "as .clang-format says"
    else
        echo "clang-format-14 is not here: skipped (./dev tools installs it)"
    fi

    title "warnings: gcc"
    build_in release -DATT_TESTS=ON
    $tested || tests/commands.sh build/attend # what the documents name
    title "warnings: clang"
    if ! command -v clang >/dev/null; then
        echo "clang is not here: skipped"
    elif $tested; then
        clang_warnings
    else
        build_in clang -DATT_BENCH=ON
    fi

    local set without=slow
    ! $tested || without='slow|sets|portable'
    for set in $(grep -l '^// rank:' src/simd/*.h | xargs -n 1 basename -s .h); do
        title "kernels and attention: $set"
        if ATTEND_ISA=$set build/attend info >/dev/null 2>&1; then
            ATTEND_ISA=$set ATTEND_TEST_LESS=1 test_in build -L core -LE "$without"
        else
            echo "this machine has no $set: skipped"
        fi
    done
}

#: sizes                 lines of code by file, without comments and blank lines, longest first, and totals
do_sizes() {
    code_files | xargs -0 awk -f cmake/without_comments.awk -f cmake/code_lines.awk
}

#: files [FOLDER...]     what each file of src and app is for, or of these folders, as its first sentence says
do_files() {
    [ $# -gt 0 ] || set -- src app
    find "$@" -name '*.[ch]' | sort | xargs awk -f cmake/files.awk
}
