#!/bin/bash
# A vision Transformer learns the digits of MNIST (LeCun et al. 1998) in 17 epochs, about twenty minutes on two cores.
# 3,000 of the 60,000 training images are for validation; the test set is read at the end only.
. "$(dirname "$0")/lib.sh"
need mnist/train-images-idx3-ubyte.gz "the four files of MNIST, train-images-idx3-ubyte.gz and so on"

learn classify "$out/model" --data "$data/mnist" --preset tiny --epochs "${EPOCHS:-17}" --batch 64 --rate 0.001 --crop 2
"$attend" evaluate classify -m "$out/model" --data "$data/mnist" --confusion "$out/confusion.svg"
