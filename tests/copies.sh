#!/bin/sh
# Does a program copy no struct out of a shared library? One that takes the address of an exported object, not linked as
# position-independent, has a copy of it, of the size that it had when the program was linked: it could never grow.
# Pointers (8 bytes) may be copied. usage: tests/copies.sh LIBRARY.so CC
set -eu
library=$1 cc=$2
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A program that takes the address of each exported object
nm -D --defined-only "$library" | awk '$2 ~ /[BDRV]/ { print $3 }' >"$work/objects"
{
    sed 's/.*/extern const char &[];/' "$work/objects"
    echo 'int main(void) { const char *volatile p = 0;'
    sed 's/.*/    p = &;/' "$work/objects"
    echo '    return !p; }'
} >"$work/all.c"

bad=0
for source in "$work/all.c" "$root/examples/attention.c" "$root/examples/own_mask.c"; do
    for pie in -no-pie -pie; do
        code=-fPIE
        [ $pie = -pie ] || code=-fno-pie
        $cc -O1 $code $pie -I"$root/include" "$source" "$library" -o "$work/program"
        readelf -rW "$work/program" | awk '$3 ~ /_COPY$/ { sub(/@.*/, "", $5); print $5 }' >"$work/copied"
        for object in $(cat "$work/copied"); do
            bytes=$(readelf --dyn-syms -W "$work/program" | awk -v name="$object" '{ sub(/@.*/, "", $8) } $8 == name { print $3 }')
            [ "$bytes" -le 8 ] || { echo "${source##*/}, $pie: has a copy of $object, $bytes bytes"; bad=1; }
        done
    done
done
[ $bad = 0 ] && echo "nothing but pointers is copied; objects exported: $(wc -l <"$work/objects")"
exit $bad
