#!/bin/bash
# From the fixed context to the Transformer: three kinds of translators learn Multi30k, German to English, in twenty
# minutes each, from the same vocabulary; then BLEU by the length of the source, on sentences (single) and on two to
# five sentences joined to one (joined). SEEDS="1 2 3" does all of it three times; MINUTES are those of each.
# Each model is what was learned last: in so short a time a mean of checkpoints would have some of the beginning.
# compare.jsonl has all figures; as runs/compare.jsonl it is what `attend explain fixed-context` shows.
. "$(dirname "$0")/lib.sh"
need multi30k "the files train, val and test_2016_flickr .de.gz and .en.gz of the data set Multi30k"

for language in de en; do
    for name in train val test_2016_flickr; do zcat "$data/multi30k/$name.$language.gz" >"$out/$name.$language"; done
    cat "$out/test_2016_flickr.$language" "$out/val.$language" >"$out/single.$language"
    awk 'BEGIN { want = 2 } { line = line (n ? " " : "") $0 }
         ++n == want { print line; line = ""; n = 0; want = want == 5 ? 2 : want + 1 }' \
        "$out/single.$language" >"$out/joined.$language"
done
"$attend" vocab --size 8000 -o "$out/joint.spm" "$out/train.de" "$out/train.en"

declare -A kind=([fixed]="--arch rnn --attention none" [additive]="--arch rnn --attention additive"
                 [transformer]="--arch transformer")
mkdir -p "$out/single" "$out/joined"
: >"$out/compare.jsonl"
logs=()
for seed in ${SEEDS:-1}; do
    for name in fixed additive transformer; do
        logs+=("$name-$seed.jsonl")
        # shellcheck disable=SC2046,SC2086
        learn translate "$out/$name-$seed" ${kind[$name]} --src "$out/train.de" --tgt "$out/train.en" \
            --valid-src "$out/val.de" --valid-tgt "$out/val.en" --tokenizer "$out/joint.spm" --seed "$seed" \
            --dropout 0.3 --schedule inverse-sqrt --rate 0.001 --warmup 1000 --batch-tokens 2048 --average 0 \
            $(limit "$name" 20)
        for text in single joined; do
            result=$out/$text/$name-$seed
            "$attend" translate -m "$out/$name-$seed" --beam 5 "$out/$text.de" >"$result.en"
            "$attend" bleu --confidence --source "$out/$text.de" --by-length --json "$result.en" "$out/$text.en" \
                >"$result.jsonl"
            echo "$name, seed $seed, $text"
            "$attend" bleu --confidence --source "$out/$text.de" --by-length "$result.en" "$out/$text.en"
            sed -nE '/"length"/!d; s/"bleu_mean": [^,]*, //; s/, "chrf.*/}/; '"
                s/^\{/{\"model\": \"$name\", \"seed\": $seed, \"text\": \"$text\", /p" "$result.jsonl" >>"$out/compare.jsonl"
        done
    done
done
for text in single joined; do
    "$attend" plot -x length -y bleu -o "$out/$text.svg" --title "BLEU by words of the source, $text" \
        "${logs[@]/#/$out/$text/}"
done
