#!/bin/bash
# Captions of Flickr8k (Hodosh, Young, Hockenmaier 2013), from images of 96 x 96 whose aspect is not kept: a network of
# convolutions with a GRU learns them in about an hour on two cores, twice: with one context vector for the whole
# picture, and with additive attention over a grid of 6 x 6 locations with a gate (Xu et al. 2015). 6,000 images are trained on,
# 1,000 choose the model, and the 1,000 of the test are read at the end only; finding each of them by its caption takes
# minutes more. MODELS="vector" or "attention" learns one of them, "transformer" a third.
. "$(dirname "$0")/lib.sh"
need flickr8k/flickr8k_96x96_jpg.tar.xz "the images of Flickr8k, 96 x 96, f8k96/*.jpg"
need flickr8k/Flickr8k.token.txt "the captions of Flickr8k"

[ -e "$out/images/done" ] || { mkdir -p "$out/images"; tar -xJf "$data/flickr8k/flickr8k_96x96_jpg.tar.xz" -C "$out/images"; }
: >"$out/images/done"
captions=(--data "$data/flickr8k/Flickr8k.token.txt" --images "$out/images/f8k96")
declare -A kind=([vector]="--attention none" [attention]="--attention additive --gate"
                 [transformer]="--decoder transformer --layers 2")
for name in ${MODELS:-vector attention}; do
    # shellcheck disable=SC2086
    learn caption "$out/$name" "${captions[@]}" --train-list "$data/flickr8k/Flickr_8k.trainImages.txt" \
        --valid-list "$data/flickr8k/Flickr_8k.devImages.txt" ${kind[$name]} --hidden 320 --dtype f16 \
        --epochs "${EPOCHS:-16}" --crop 6 --flip --minutes "${MINUTES:-60}"
    echo "$name, on the test images of Flickr8k"
    "$attend" evaluate caption -m "$out/$name" "${captions[@]}" --list "$data/flickr8k/Flickr_8k.testImages.txt" \
        --train-list "$data/flickr8k/Flickr_8k.trainImages.txt" --retrieval
done
echo "To ship it: cp $out/attention/{config.json,model.safetensors,preprocessor_config.json,words.json} models/flickr8k-captions"
