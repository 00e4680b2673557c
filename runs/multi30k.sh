#!/bin/bash
# Multi30k, German to English: a Transformer from nothing in an hour; BLEU of test_2016 with a beam of 5.
. "$(dirname "$0")/lib.sh"
need multi30k "the files train, val and test_2016_flickr .de.gz and .en.gz of the data set Multi30k"

for name in train val test_2016_flickr; do
    for language in de en; do zcat "$data/multi30k/$name.$language.gz" >"$out/$name.$language"; done
done
learn translate "$out/model" --src "$out/train.de" --tgt "$out/train.en" --valid-src "$out/val.de" --valid-tgt "$out/val.en" \
    --dropout 0.3 --rate 0.001 --warmup 1000 --validate-every 250 --save-every 250 --minutes 60
"$attend" translate -m "$out/model" --beam 5 "$out/test_2016_flickr.de" >"$out/translated.en"
"$attend" bleu --confidence "$out/translated.en" "$out/test_2016_flickr.en"
