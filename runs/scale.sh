#!/bin/bash
# A log of 10^7 actions (ACTIONS=100000000: 10^8) over 10^5 items, made by runs/actions.awk: how long it takes, and how much
# memory, to read it, to train on it for an epoch with sampled losses, to evaluate on 100,000 of its users, and to write a list
# for each user, in PARTS parts of which PROCESSES run at a time. MINUTES=N ends the training earlier; FIRST=N writes the
# first N parts only. What an interrupted run has finished is not measured again.
. "$(dirname "$0")/lib.sh"
actions=${ACTIONS:-10000000} items=${ITEMS:-100000} parts=${PARTS:-8} processes=${PROCESSES:-2}
first=${FIRST:-$parts}
out=$out/$actions
mkdir -p "$out"
log=$out/log.tsv
command -v /usr/bin/time >/dev/null || { echo "/usr/bin/time is not there: apt-get install time" >&2; exit 1; }

# measure NAME COMMAND...: runs it, unless it was done, and prints minutes and peak memory of its largest process.
measure() {
    local name=$1
    shift
    if [ ! -e "$out/$name.time" ]; then
        /usr/bin/time -o "$out/$name.begun" -f '%e %U %S %M' "$@" >"$out/$name.out" 2>"$out/$name.err" ||
            { cat "$out/$name.err" >&2; exit 1; }
        mv "$out/$name.begun" "$out/$name.time"
    fi
    awk -v name="$name" '{ printf "%-8s %7.1f minutes, %7.1f of processors, %6.2f GB\n", name, $1 / 60, ($2 + $3) / 60, $4 / 1e6 }' \
        "$out/$name.time"
}

if [ ! -e "$log" ]; then
    awk -v actions="$actions" -v items="$items" -f runs/actions.awk >"$log.begun"
    mv "$log.begun" "$log"
fi
[ -e "$out/train.time" ] || rm -rf "$out/model" # an interrupted training begins anew, so that its minutes are those of all of it
measure read "$attend" train recommend --arch popularity --data "$log" --split none -o "$out/popular"
measure train "$attend" train recommend --data "$log" --hidden 32 --layers 1 --max-positions 20 --batch 512 \
    --loss sampled-softmax --negatives 64 --held-out-users 100000 --epochs 1 --patience 0 ${MINUTES:+--minutes "$MINUTES"} \
    -o "$out/model"
measure evaluate "$attend" evaluate recommend -m "$out/model" --data "$log"
measure lists sh -c 'seq "$5" | xargs -P "$2" -I{} "$3" recommend -m "$4/model" --data "$4/log.tsv" --all-users -t 1 \
    --shard {}/"$1" --resume -o "$4/lists-{shard}.tsv"' - "$parts" "$processes" "$attend" "$out" "$first"
cat "$out/evaluate.out"
awk -v n="$(cat "$out"/lists-*-of-"$parts".tsv | wc -l)" 'BEGIN { print n " lists" }'
