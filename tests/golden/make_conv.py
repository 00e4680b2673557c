#!/usr/bin/env python3
"""Writes conv.txt: convolutions and poolings of PyTorch, in float64. A line is a name and its numbers; images are
[images, height, width, channels] there.

    python3 make_conv.py

Made with torch 2.15.0 on a CPU. Inputs are those of check_numbers in tests/fixtures/check.h.
"""
import pathlib

from torch.nn.functional import avg_pool2d, conv2d, max_pool2d

from check_numbers import numbers

lines = []
IMAGES, HEIGHT, WIDTH, IN, OUT = 2, 7, 6, 3, 4
images = numbers(1, IMAGES, HEIGHT, WIDTH, IN).permute(0, 3, 1, 2)


def store(name, y):
    lines.append(f"{name} {' '.join(f'{float(v):.9g}' for v in y.permute(0, 2, 3, 1).reshape(-1))}\n")


for kernel, stride, padding in [((3, 3), (1, 1), (1, 1)), ((3, 2), (2, 3), (0, 1)), ((1, 1), (1, 1), (0, 0)),
                                ((7, 6), (7, 6), (0, 0))]:
    y = conv2d(images, numbers(2, OUT, IN, *kernel), numbers(3, OUT), stride=stride, padding=padding)
    store(f"conv_{kernel[0]}x{kernel[1]}", y)
store("max", max_pool2d(images, (3, 2), (2, 1), (1, 1)))
store("mean", avg_pool2d(images, (3, 2), (2, 1), (1, 1), count_include_pad=False))
store("mean_2x3", avg_pool2d(images, (2, 3)))
pathlib.Path(__file__).with_name("conv.txt").write_text("".join(lines))
