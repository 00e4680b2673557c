#!/bin/bash
# S3Rec's Beauty (Zhou et al. 2020; 22,363 users, 12,101 items): SASRec with the softmax over all items, within an hour
# on two cores. The model is chosen by NDCG@10 on validation among all items; then the test, by three protocols: among
# all items with the unseen ones counted, without them as in eSASRec (Tikhonovich et al. 2025), and among 99 random
# items outside the history as in S3Rec. WIDTH=256 is the width of eSASRec.
. "$(dirname "$0")/lib.sh"
need sasrec/s3rec/Beauty.txt "Beauty.txt of github.com/RUCAIBox/CIKM2020-S3Rec, data/"
log=$data/sasrec/s3rec/Beauty.txt
width=${WIDTH:-128}

learn recommend "$out/model-$width" --data "$log" --format histories --hidden "$width" --layers "${LAYERS:-1}" \
    --heads 1 --max-positions 50 --dropout 0.2 --batch 128 --rate 0.001 --beta2 0.98 --exclude-seen \
    --epochs "${EPOCHS:-60}" --patience "${PATIENCE:-8}" --minutes "${MINUTES:-55}"
"$attend" plot "$out/model-$width" -o "$out/model-$width.svg"
evaluate() { "$attend" evaluate recommend -m "$out/model-$width" --data "$log" --format histories "$@"; }
evaluate --exclude-seen
evaluate --exclude-seen --leave-out-unseen
evaluate --candidates outside-history --negatives 99 --draws 5
