#!/bin/sh
# May a program and the libraries be of different versions? Compiles tests/versions/program.c against the headers, and
# against copies whose option structs are shorter or longer, and runs each with the shared libraries in FOLDER.
# usage: tests/versions.sh FOLDER CC
set -eu
folder=$1 cc=$2
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run VERSION [FLAG]: to $work/VERSION.txt
run() {
    $cc -std=c11 -Wall -Wextra -Werror ${2:-} -I"$work/$1" "$root/tests/versions/program.c" \
        -L"$folder" -lattend_model -lattend -Wl,-rpath,"$folder" -o "$work/program"
    "$work/program" >"$work/$1.txt" || { echo "a program of headers that are $1 fails"; exit 1; }
}

cp -r "$root/include" "$work/same"
run same
for version in older newer; do
    mkdir "$work/$version"
    for header in "$work"/same/*.h; do
        awk -v version=$version -f "$root/tests/versions/header.awk" "$header" >"$work/$version/${header##*/}"
    done
    flag=-DNEWER
    [ $version = newer ] || flag=
    run $version $flag
    diff "$work/same.txt" "$work/$version.txt" || { echo "results differ against headers that are $version"; exit 1; }
    echo "headers that are $version: the same results"
done
