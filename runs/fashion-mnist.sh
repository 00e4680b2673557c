#!/bin/bash
# models/fashion-mnist, the classifier that comes with attend: a vision Transformer of 0.8 million parameters learns
# Fashion-MNIST (Xiao et al. 2017; Debian's dataset-fashion-mnist) in 22 epochs, about 25 minutes on two cores. 3,000
# of the 60,000 training images are for validation; the test set is read at the end only.
. "$(dirname "$0")/lib.sh"
images=${FASHION_MNIST:-/usr/share/datasets/fashion-mnist}
[ -e "$images" ] || { echo "$images is not there: apt install dataset-fashion-mnist" >&2; exit 1; }

learn classify "$out/model" --data "$images" --preset tiny --epochs "${EPOCHS:-22}" --batch 64 --rate 0.001 \
    --crop 2 --flip --dtype f16 \
    --labels "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"
"$attend" evaluate classify -m "$out/model" --data "$images" --confusion "$out/confusion.svg"
echo "To ship it: cp $out/model/{config.json,model.safetensors,preprocessor_config.json} models/fashion-mnist"
echo "and its pictures: runs/fashion-mnist-examples.py $images models/fashion-mnist/examples"
