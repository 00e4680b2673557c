#!/bin/bash
# MiniLM learns sentence similarity, from the STS benchmark (Cer et al. 2017), in a minute and a half.
. "$(dirname "$0")/lib.sh"
need stsb "the files stsb-en-train.csv and stsb-en-dev.csv of Philip May's STSb Multi MT"

model=$out/model
learn embed "$model" -m all-MiniLM-L6-v2 --pairs "$data/stsb/stsb-en-train.csv" --valid "$data/stsb/stsb-en-dev.csv" \
    --epochs 2 --batch 16 --rate 2e-5 --validate-every 90 --save-every 360
"$attend" plot "$model/log.jsonl" -y spearman,pearson --title "STS-B, development set" -o "$out/learning.svg"
"$attend" similarity -m "$model" --pairs "$data/stsb/stsb-en-dev.csv" --gold >"$out/dev.txt"
