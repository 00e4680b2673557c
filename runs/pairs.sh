#!/bin/bash
# MiniLM learns from pairs without scores, by multiple negatives ranking: the pairs of the STS benchmark that people
# gave 4 to 5 of 5 points, in 22 steps.
. "$(dirname "$0")/lib.sh"
need stsb "the files stsb-en-train.csv and stsb-en-dev.csv of Philip May's STSb Multi MT"

model=$out/model
# The score is the last column, and texts in quotes may hold commas.
sed -nE 's/,[4-5](\.[0-9]+)?\r?$//p' "$data/stsb/stsb-en-train.csv" | gzip >"$out/alike.csv.gz"
learn embed "$model" -m all-MiniLM-L6-v2 --pairs "$out/alike.csv.gz" --valid "$data/stsb/stsb-en-dev.csv" \
    --epochs 1 --batch 64 --rate 2e-5 --validate-every 11 --save-every 22
for name in all-MiniLM-L6-v2 "$model"; do
    "$attend" similarity -m "$name" --pairs "$data/stsb/stsb-en-dev.csv" --gold >/dev/null # prints correlations to standard error
done
