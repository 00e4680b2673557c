#!/bin/bash
# Five further data sets of sequential recommendation, each with SASRec and the softmax over all items, and BERT4Rec's
# Beauty with a shortened BERT4Rec, too (its paper makes 400,000 steps). ONLY="toys sports" learns only these.
. "$(dirname "$0")/lib.sh"

# name, file below $data/sasrec, its format; minutes; options. The figures beside which they stand are in docs/RUNS.md.
table() {
    cat <<'END'
bert4rec-beauty  bert4rec/beauty.txt               lines      55  --hidden 64 --layers 2 --dropout 0.1 --exclude-seen
bert4rec-short   bert4rec/beauty.txt               lines      55  --arch bert4rec --hidden 64 --layers 2 --heads 2 --dropout 0.2 --mask-share 0.2 --last-mask-share 0.1 --exclude-seen
sports           s3rec/Sports_and_Outdoors.txt     histories  55  --hidden 128 --layers 1 --dropout 0.2 --exclude-seen
toys             s3rec/Toys_and_Games.txt          histories  55  --hidden 128 --layers 1 --dropout 0.2 --exclude-seen
ml-100k          ml-100k/ml-100k.inter             inter      15  --hidden 64 --layers 2 --dropout 0.3 --max-positions 200 --exclude-seen
END
}

while read -r name file format minutes options; do
    [[ -z ${ONLY:-} || " $ONLY " == *" $name "* ]] || continue
    need "sasrec/$file" "see docs/RUNS.md"
    log=$data/sasrec/$file
    echo "== $name"
    # shellcheck disable=SC2086 # options are words
    learn recommend "$out/$name" --data "$log" --format "$format" $options --batch 128 --rate 0.001 --beta2 0.98 \
        --epochs "${EPOCHS:-200}" --patience "${PATIENCE:-8}" --minutes "${MINUTES:-$minutes}"
    for how in "" --leave-out-unseen; do
        # shellcheck disable=SC2086 # nothing is not a word
        "$attend" evaluate recommend -m "$out/$name" --data "$log" --format "$format" --exclude-seen $how
    done
done < <(table)
