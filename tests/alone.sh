#!/bin/bash
# libattend alone: does it need only libc and threads, and is it small? Without the models library the build compiles
# the same files for it, and looks for no other library; tests/subproject.sh builds it so from nothing.
# usage: tests/alone.sh BUILD LIBATTEND.so CC
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The object files of libattend in this build folder
objects() {
    sed -n 's/^ *"command": ".* -o \([^ ]*attend_\(objects\|simd_[a-z0-9]*\)[.]dir[^ ]*[.]o\) .*/\1/p' "$1/compile_commands.json" | sort
}
cmake -S "$root" -B "$work/build" -DATT_MODEL=OFF -DATT_TESTS=OFF -DCMAKE_C_COMPILER="$3" >"$work/log" || { cat "$work/log"; exit 1; }
objects "$1" >"$work/whole"
objects "$work/build" >"$work/alone"
[ "$(wc -l <"$work/alone")" -gt 100 ] && diff "$work/whole" "$work/alone" || { echo "with the models library: <, alone: >"; exit 1; }
! grep -i jansson "$work/build/CMakeCache.txt" || { echo "it has looked for what the models library needs"; exit 1; }

strip -o "$work/libattend.so" "$2"
bytes=$(stat -c %s "$work/libattend.so")
echo "size: $bytes bytes; must be at most 1500000"
needs=$(objdump -p "$2" | awk '$1 == "NEEDED" && $2 !~ /^(libc|libm|libpthread|ld-linux[^.]*)\.so/ { print $2 }')
echo "needs beside libc: ${needs:-nothing}"
[ "$bytes" -le 1500000 ] && [ -z "$needs" ]
