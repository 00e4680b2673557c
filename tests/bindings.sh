#!/bin/sh
# Does examples/bindings.py, which has the library by Python's ctypes, embed as sentence-transformers does and continue
# a text as examples/generate does?
# usage: tests/bindings.sh libattend_model.so
set -eu
model=${ATTEND_MODELS:-${XDG_DATA_HOME:-$HOME/.local/share}/attend/models}/all-MiniLM-L6-v2
here=$(dirname "$0")
if ! command -v python3 >/dev/null || [ ! -e "$model" ]; then
    echo "python3 or $model is not there: skipped (attend fetch all-MiniLM-L6-v2 downloads the model)"
    exit 77
fi
found=$(python3 "$here/../examples/bindings.py" "$1" "$model" "The cat sleeps on the sofa." \
    "A kitten is napping on the couch." "$here/golden/tiny_llama" bdcab)
echo "$found"
[ "$found" = "0.7413
bdcaboeqegslaegslaegslaegslae" ]
