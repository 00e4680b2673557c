#!/usr/bin/env python3
"""Writes batch_norm.txt: PyTorch's BatchNorm2d in float64. Two batches in training, then the first by the running
statistics. A line is a name and its numbers; images are [images, height, width, channels] there.

    python3 make_batch_norm.py

Made with torch 2.15.0 on a CPU. Inputs are those of check_numbers in tests/fixtures/check.h.
"""
import pathlib

import torch

from check_numbers import numbers

IMAGES, HEIGHT, WIDTH, CHANNELS = 2, 3, 4, 5
lines = []


def store(name, y):
    lines.append(f"{name} {' '.join(f'{float(v):.9g}' for v in y.detach().reshape(-1))}\n")


def store_images(name, y):
    store(name, y.permute(0, 2, 3, 1))


images = [numbers(seed, IMAGES, HEIGHT, WIDTH, CHANNELS).permute(0, 3, 1, 2).requires_grad_() for seed in (1, 2)]
norm = torch.nn.BatchNorm2d(CHANNELS, dtype=torch.float64)
norm.weight.data, norm.bias.data = numbers(3, CHANNELS), numbers(4, CHANNELS)
for n, x in enumerate(images, 1):
    y = norm(x)
    store_images(f"training_{n}", y)
    store(f"mean_{n}", norm.running_mean)
    store(f"variance_{n}", norm.running_var)
(y * numbers(5, IMAGES, HEIGHT, WIDTH, CHANNELS).permute(0, 3, 1, 2)).sum().backward()
store_images("dx", images[1].grad)
store("dgamma", norm.weight.grad)
store("dbeta", norm.bias.grad)
store_images("evaluation", norm.eval()(images[0]))
pathlib.Path(__file__).with_name("batch_norm.txt").write_text("".join(lines))
