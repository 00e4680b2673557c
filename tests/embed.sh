#!/bin/sh
# Does examples/embed find the model by its name, and the two sentences as similar as sentence-transformers does (0.7413)?
# usage: tests/embed.sh PROGRAM
set -eu
model=${ATTEND_MODELS:-${XDG_DATA_HOME:-$HOME/.local/share}/attend/models}/all-MiniLM-L6-v2
if [ ! -e "$model" ]; then
    echo "$model is not there: skipped (attend fetch all-MiniLM-L6-v2 downloads it)"
    [ "${ATTEND_REQUIRE_MODEL:-0}" = 1 ] && exit 1
    exit 77
fi
found=$("$1" all-MiniLM-L6-v2 "The cat sleeps on the sofa." "A kitten is napping on the couch.")
echo "$found"
[ "$found" = 0.7413 ]
