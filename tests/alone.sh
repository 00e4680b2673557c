#!/bin/bash
# libattend alone, built from nothing: does it need only libc and threads, is it small, and is it built quickly?
# usage: tests/alone.sh CC
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

start=$SECONDS
cmake -S "$root" -B "$work/build" -DATT_MODEL=OFF -DCMAKE_C_COMPILER="$1" >"$work/log" &&
    cmake --build "$work/build" --parallel >>"$work/log" || { cat "$work/log"; exit 1; }
cmake --install "$work/build" --strip --prefix "$work/usr" >"$work/log"
library=$(find "$work/usr" -name 'libattend.so.*.*')

bytes=$(stat -c %s "$library")
echo "size: $bytes bytes; must be at most 1500000"
echo "built from nothing in $((SECONDS - start)) s on $(nproc) cores; must be below 15 on two idle ones"
needs=$(objdump -p "$library" | awk '$1 == "NEEDED" && $2 !~ /^(libc|libm|libpthread|ld-linux[^.]*)\.so/ { print $2 }')
echo "needs beside libc: ${needs:-nothing}"
[ "$bytes" -le 1500000 ] && [ -z "$needs" ]
