#!/bin/bash
# Items that nobody has chosen yet: every tenth item of MovieLens 100K is taken out of all histories, but for the last one
# of each user, which ends his history and is the test. SASRec without texts cannot know these items; with
# --item-texts (title, year, kind) it can. Three trainings of up to five minutes; a sentence model embeds the texts.
. "$(dirname "$0")/lib.sh"
need sasrec/ml-100k/ml-100k.inter "MovieLens 100K in RecBole's format"
need sasrec/ml-100k/ml-100k.item "the titles"

log=$out/log.txt texts=$out/titles.tsv
tail -n +2 "$data/sasrec/ml-100k/ml-100k.inter" | sort -s -k1,1n -k4,4n |
    awk '{ cold = $2 % 10 == 3 }
         function write() { if (enough) print user history " " last }
         $1 != user { write(); user = $1; kept = ""; n = enough = 0 }
         cold { last = $2; history = kept; enough = n >= 3 }
         !cold { kept = kept " " $2; n++ }
         END { write() }' >"$log"
tail -n +2 "$data/sasrec/ml-100k/ml-100k.item" | awk -F '\t' '{ print $1 "\t" $2 " (" $3 "): " $4 }' >"$texts"

awk '{ NF--; print }' "$log" >"$out/histories.txt"
awk -F '\t' '$1 % 10 == 3 { print $1 }' "$texts" >"$out/new.txt"

# Of lists of new items alone, how many have the one that the user chose
recall_of_new() {
    "$attend" recommend -m "$1" --data "$out/histories.txt" --format histories --all-users --allow "$out/new.txt" -k 10 |
        awk 'FNR == NR { chosen[$1] = $NF; next }
             { for (i = 2; i < NF; i += 2) hits += $i == chosen[$1] }
             END { printf "recall@10 among the new items alone: %.3f of %d users\n", hits / FNR, FNR }' "$log" -
}

declare -A content=([without]="" [start]="--item-texts $texts --content start" [add]="--item-texts $texts --content add")
for name in without start add; do
    echo "== $name"
    # shellcheck disable=SC2086 # options are words
    learn recommend "$out/$name" --data "$log" --format histories ${content[$name]} --hidden 64 --layers 2 --dropout 0.3 \
        --max-positions 200 --exclude-seen --batch 128 --rate 0.001 --beta2 0.98 --epochs "${EPOCHS:-200}" \
        --patience "${PATIENCE:-8}" --minutes "${MINUTES:-5}"
    "$attend" evaluate recommend -m "$out/$name" --data "$log" --format histories --item-texts "$texts" --exclude-seen
    [ "$name" = without ] || recall_of_new "$out/$name"
done
