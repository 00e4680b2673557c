#!/bin/bash
# models/tatoeba-de-en, the translator that comes with attend: everyday sentences from Tatoeba, in about 100 minutes.
# The file is English TAB German and has an English sentence again with each of its translations. 2,000 English sentences
# are for the test and 1,000 for validation, with all their translations; pairs of which the German sentence is there
# too are not trained on.
. "$(dirname "$0")/lib.sh"
need tatoeba/deu-eng-2018.zip "German-English sentence pairs from Tatoeba, in a file deu.txt, English TAB German a line"

python3 -m zipfile -e "$data/tatoeba/deu-eng-2018.zip" "$out"
cut -f 1 "$out/deu.txt" | LC_ALL=C sort -u | shuf --random-source="$out/deu.txt" >"$out/english"
head -n 2000 "$out/english" >"$out/english.test"
sed -n '2001,3000p' "$out/english" >"$out/english.valid"
for part in test valid; do
    awk -F '\t' 'NR == FNR { mine[$0]; next } $1 in mine' "$out/english.$part" "$out/deu.txt" >"$out/$part.tsv"
done
cat "$out/test.tsv" "$out/valid.tsv" |
    awk -F '\t' 'NR == FNR { english[$1]; german[$2]; next } !($1 in english) && !($2 in german)' - "$out/deu.txt" \
        >"$out/train.tsv"

# Few of these sentences have numbers, and most names are Tom and Maria: more pairs, with others in their places. Most
# translations of a sentence with an exclamation mark end with a full stop: what is trained on keeps the mark. The sentences
# that tests translate are not trained on.
tested=tests/golden/numbers_and_names.tsv
awk -F '\t' -v OFS='\t' '$2 ~ /!$/ { sub(/[.]$/, "!", $1) } { print $1, $2 }' "$out/train.tsv" >"$out/own.tsv"
runs/multiply.py $tested <"$out/own.tsv" >"$out/more.tsv"
cat "$out/own.tsv" "$out/more.tsv" >"$out/train.tsv"
cut -f 1 $tested | awk -F '\t' 'NR == FNR { never[$0]; next } $2 in never { print "trained on: " $2; found = 1 }
    END { exit found }' - "$out/train.tsv"
for part in own train valid test; do
    cut -f 1 "$out/$part.tsv" >"$out/$part.en"
    cut -f 2 "$out/$part.tsv" >"$out/$part.de"
done
wc -l "$out"/{own,more,train,valid,test}.tsv

# Each digit is a piece, and each character but those that are too rare to be in the vocabulary. Pieces are those of people's
# sentences, as invented names would take the places of words; but few of these have the euro's sign. Rules of
# normalization would be a third of a megabyte, twice; these texts need none.
grep € "$out/more.tsv" >"$out/signs"
"$attend" vocab --size 6000 --split-digits --character-coverage 1 --min-count 3 -n identity -o "$out/joint.spm" \
    "$out/own.de" "$out/own.en" "$out/signs"
learn translate "$out/model" --src "$out/train.de" --tgt "$out/train.en" \
    --valid-src "$out/valid.de" --valid-tgt "$out/valid.en" --tokenizer "$out/joint.spm" --batch-tokens 2048 \
    --schedule inverse-sqrt --rate 0.001 --warmup 1000 --dtype f16 --steps 13000
"$attend" translate -m "$out/model" "$out/test.de" >"$out/translated.en"
"$attend" bleu --confidence "$out/translated.en" "$out/test.en"
echo "To ship it: cp $out/model/{config.json,generation_config.json,model.safetensors,source.spm,target.spm,\
tokenizer_config.json,vocab.json} models/tatoeba-de-en"
