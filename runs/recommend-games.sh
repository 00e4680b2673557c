#!/bin/bash
# Games of the paper of SASRec (Kang, McAuley 2018; 31,013 users, 23,715 items), as in the paper: its block, one
# negative and binary cross entropy, users drawn with replacement, Adam with beta2 0.98; the test item among 100 random
# items outside the user's training items, of all users, mean of five draws. The model is chosen in the same way, on
# validation. Figures of the paper: .7410 / .5360; of its code, .7318 / .5308.
. "$(dirname "$0")/lib.sh"
need sasrec/sasrec_orig/Video.txt "Video.txt of github.com/kang205/SASRec, data/"
log=$data/sasrec/sasrec_orig/Video.txt

learn recommend "$out/model" --data "$log" --block sasrec --loss binary --with-replacement --hidden 50 --layers 2 \
    --heads 1 --max-positions 50 --dropout 0.5 --batch 128 --rate 0.001 --beta2 0.98 --epochs "${EPOCHS:-250}" \
    --validate-candidates outside-training --validate-every 2430 --save-every 2430 --patience "${PATIENCE:-10}" \
    --minutes "${MINUTES:-55}"
"$attend" plot "$out/model" -o "$out/model.svg"
"$attend" evaluate recommend -m "$out/model" --data "$log" --candidates outside-training --negatives 100 --draws 5
"$attend" evaluate recommend -m "$out/model" --data "$log" --exclude-seen
