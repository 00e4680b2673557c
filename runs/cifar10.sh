#!/bin/bash
# Two vision Transformers learn CIFAR-10 (Krizhevsky 2009): one of patches alone, and one with two convolutions before it,
# of which an epoch takes from 160 to 320 seconds on two cores; EPOCHS=11 is an hour on the slower ones. The images are a
# JPEG copy (quality 75, 4:2:0), which is harder than the original: figures of others are for that. MODELS="patches" or
# "hybrid" learns one of them. 2,500 of the 50,000 training images are for validation; the test set is read at the end
# only.
. "$(dirname "$0")/lib.sh"
need cifar10/cifar10_jpg.tar.xz "CIFAR-10 as JPEG files, train/CLASS/*.jpg and test/CLASS/*.jpg"

[ -e "$out/images/done" ] || { mkdir -p "$out/images"; tar -xJf "$data/cifar10/cifar10_jpg.tar.xz" -C "$out/images"; }
: >"$out/images/done"
declare -A kind=([patches]="--preset tiny --epochs ${EPOCHS:-28}" [hybrid]="--preset hybrid --epochs ${EPOCHS:-22}")
for name in ${MODELS:-patches hybrid}; do
    # shellcheck disable=SC2086
    learn classify "$out/$name" --data "$out/images" ${kind[$name]} --batch 64 --rate 0.001 --crop 4 --flip
    echo "$name, on the JPEG copy of CIFAR-10"
    "$attend" evaluate classify -m "$out/$name" --data "$out/images" --confusion "$out/$name.svg"
done
