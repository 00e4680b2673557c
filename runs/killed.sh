#!/bin/bash
# LINES (10^6) made sentences embedded by all-MiniLM-L6-v2 in PARTS (50) parts, PROCESSES (2) at a time, all killed by SIGKILL
# ten times in the middle and begun anew with --resume: are the vectors, bit by bit, those of one process?
. "$(dirname "$0")/lib.sh"
lines=${LINES:-1000000} parts=${PARTS:-50} processes=${PROCESSES:-2} model=${MODEL:-all-MiniLM-L6-v2}
out=$out/$lines
mkdir -p "$out"
text=$out/lines.txt

# Sentences of 4 to 20 words, drawn by Park and Miller's generator from those of the facts.
if [ ! -e "$text" ]; then
    awk -v lines="$lines" '
        function draw(n) { state = state * 16807 % 2147483647; return 1 + state % n }
        BEGIN { state = 1 }
        { for (i = 1; i <= NF; i++) word[++words] = $i }
        END {
            for (i = 0; i < lines; i++) {
                line = word[draw(words)]
                for (k = 2 + draw(17); k > 0; k--) line = line " " word[draw(words)]
                print line
            }
        }' examples/facts.txt >"$text.begun"
    mv "$text.begun" "$text"
fi
embed() { "$attend" embed -m "$model" --format npy "$@" "$text"; }

[ -e "$out/whole.npy" ] || embed -o "$out/whole.npy"
rm -f "$out"/part-* "$out"/.part-*
export attend model text out parts
set -m # a group of processes for each job
# Begins the parts that are not finished.
begin_parts() {
    sh -c 'seq "$parts" | xargs -P "$0" -I{} "$attend" embed -t 1 -m "$model" --format npy --shard {}/"$parts" --resume \
        -o "$out/part-{shard}.npy" "$text"' "$processes" 2>>"$out/parts.err" &
    group=$!
    disown # no message when it is killed
}
half() { find "$out" -name '*.unfinished-*' | wc -l; }
finished() { find "$out" -name '.part-*.finished' | wc -l; }

# Each time, when an eleventh of the parts has been added to those that are finished
for killed in $(seq 10); do
    begin_parts
    until [ $((11 * $(finished))) -ge $((killed * parts)) ] && [ "$(half)" -gt 0 ]; do
        kill -0 -- "-$group" || { cat "$out/parts.err" >&2; exit 1; }
        sleep 0.1
    done
    kill -KILL -- "-$group"
    echo "killed $killed times: $(finished) of $parts parts are finished, $(half) half written"
    while kill -0 -- "-$group" 2>/dev/null; do sleep 0.1; done
done
begin_parts
while kill -0 -- "-$group" 2>/dev/null; do sleep 1; done
[ "$(finished)" = "$parts" ] && [ "$(half)" = 0 ]
{ head -c 128 "$out/whole.npy"; tail -qc +129 "$out"/part-*; } | cmp - "$out/whole.npy"
echo "$lines lines, killed $killed times: the same bits"
