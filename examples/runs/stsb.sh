#!/bin/sh
# MiniLM learns how alike sentences are, from the STS benchmark (Cer et al. 2017); docs/RUNS.md has what comes out.
#
#     examples/runs/stsb.sh DATA FOLDER
#
# DATA has stsb-en-train.csv and stsb-en-dev.csv, of Philip May's STSb Multi MT. FOLDER becomes the model's. The program
# is build/attend, or that of $ATTEND; ./dev demo fetches all-MiniLM-L6-v2. Called again, it goes on where it was.
set -eu
data=$1 folder=$2
attend=${ATTEND:-$(dirname "$0")/../../build/attend}
resume=
[ -z "$(ls "$folder"/checkpoint-*.safetensors 2>/dev/null)" ] || resume=--resume
"$attend" train embed -m all-MiniLM-L6-v2 --pairs "$data/stsb-en-train.csv" --valid "$data/stsb-en-dev.csv" \
    --epochs 2 --batch 16 --rate 2e-5 --validate-every 90 --save-every 360 -o "$folder" $resume
"$attend" plot "$folder/log.jsonl" -y spearman,pearson --title "STS-B, development set" -o "$folder/learning.svg"
"$attend" similarity -m "$folder" --pairs "$data/stsb-en-dev.csv" --gold >"$folder/dev.txt"
