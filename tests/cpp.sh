#!/bin/sh
# Are the public headers good C++20? Compiles each alone, without a warning, and runs tests/macros.cpp with the shared
# libraries in FOLDER, by each compiler that is here. The build does so with examples/*.cpp, and ./dev check by clang++.
# usage: tests/cpp.sh FOLDER
set -eu
folder=$1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=c++20 -Wall -Wextra -Wpedantic -Wold-style-cast -Werror -I$root/include"

compilers=0
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || { echo "$compiler is not here: skipped"; continue; }
    compilers=$((compilers + 1))
    for header in "$root"/include/*.h; do
        echo "#include <${header##*/}>" >"$work/header.cpp"
        # shellcheck disable=SC2086
        $compiler $flags -fsyntax-only "$work/header.cpp"
    done
    # shellcheck disable=SC2086
    $compiler $flags "$root/tests/macros.cpp" -L"$folder" -lattend -Wl,-rpath,"$folder" -o "$work/macros"
    "$work/macros" || { echo "$compiler: tests/macros.cpp returns $?"; exit 1; }
    echo "$compiler: headers compile without a warning, macros have the right values"
done
[ $compilers -gt 0 ] || exit 77
