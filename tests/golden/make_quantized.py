#!/usr/bin/env python3
"""Writes quantized.txt for tests/core/quantized.c: blocks of each quantised type, by the package of llama.cpp.

    pip install gguf==0.19.* torch
    tests/golden/make_quantized.py

A line has a type and the bytes of all its blocks, in hexadecimal. The numbers are those of golden_numbers in the test.
"""
import pathlib

import numpy
from gguf import GGMLQuantizationType, quants

from check_numbers import numbers

BLOCK, BLOCKS = 32, 16
x = numbers(5, BLOCKS, BLOCK).numpy().astype(numpy.float32)
x *= numpy.exp2(numpy.arange(BLOCKS) % 7 - 3).astype(numpy.float32)[:, None]
x[1] = 0
x[2] = 0.75  # all the same
x[3] = (numpy.arange(BLOCK) - 16) / numpy.float32(2)  # halves of a step
x[3, 0] = 127
x[4] *= numpy.float32(2**-100)  # a step that is 0 in f16
x[5] *= numpy.float32(2**14)
x[6] = numpy.abs(x[6])
x[7] = -numpy.abs(x[7])
with open(pathlib.Path(__file__).parent / "quantized.txt", "w", encoding="utf-8") as out:
    for name in "Q8_0", "Q4_0", "Q4_1":
        print(name, quants.quantize(x, GGMLQuantizationType[name]).tobytes().hex(), file=out)
