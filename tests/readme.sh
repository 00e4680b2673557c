#!/bin/bash
# Is what README.md shows true? Its C program is examples/attention.c, and its commands print what stands below them
# (on the scalar set, which computes the same bits on every machine).
# usage: tests/readme.sh FOLDER_OF_ATTEND     --write: puts what they print there
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
models=${ATTEND_MODELS:-${XDG_DATA_HOME:-$HOME/.local/share}/attend/models}
for model in all-MiniLM-L6-v2 SmolLM2-135M-Instruct; do
    if [ ! -e "$models/$model" ]; then
        echo "$model is not there: skipped (attend fetch $model downloads it)"
        [ "${ATTEND_REQUIRE_MODEL:-0}" = 1 ] && exit 1
        exit 77
    fi
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH="$1:$PATH" ATTEND_ISA=scalar
ln -s "$root/examples" "$root/models" "$work"
cd "$work"

awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$root/README.md" >program.c
sed -n '/^#include/,$p' "$root/examples/attention.c" | diff program.c - || { echo "README.md: <, examples/attention.c: >"; exit 1; }

inside=false
while IFS= read -r line; do
    case $line in
    '```console') inside=true; echo "$line" ;;
    '```') inside=false; echo "$line" ;;
    '$ '*) echo "$line"; if $inside; then bash -c "${line#$ }" 2>&1; fi ;;
    *) $inside || echo "$line" ;;
    esac
done <"$root/README.md" >README.md

if [ "${2:-}" = --write ]; then cp README.md "$root/README.md"; fi
diff "$root/README.md" README.md || { echo "README.md says: <, the commands print: >"; exit 1; }
