#!/bin/bash
# small_parallel_enja, English to Japanese: twenty minutes; BLEU of characters and chrF of the test.
. "$(dirname "$0")/lib.sh"
need small_parallel_enja "the files train, dev and test .en and .ja of small_parallel_enja"

enja=$data/small_parallel_enja
# shellcheck disable=SC2046
learn translate "$out/model" --src "$enja/train.en" --tgt "$enja/train.ja" --valid-src "$enja/dev.en" --valid-tgt "$enja/dev.ja" \
    --dropout 0.2 --batch-tokens 2048 --schedule inverse-sqrt --rate 0.001 --warmup 1000 --save-every 100 $(limit transformer 20)
"$attend" translate -m "$out/model" --beam 5 "$enja/test.en" >"$out/translated.ja"
"$attend" bleu --confidence --tokenize char "$out/translated.ja" "$enja/test.ja"
