#!/usr/bin/env python3
"""Writes quantized.txt for tests/core/quantized.c: blocks of each quantized type, by the package of llama.cpp.

    pip install gguf==0.19.* torch
    tests/golden/make_quantized.py

A line has a type and the bytes of all its blocks, in hexadecimal. The numbers are those of golden_numbers in the test.
Then a line of each type has the 64-bit FNV-1a hash of the bytes of MANY blocks, those of many_numbers there, of which
every other one has eighths, so that numbers lie halfway between two steps.
"""
import pathlib

import numpy
from gguf import GGMLQuantizationType, quants

from check_numbers import numbers

BLOCK, BLOCKS, MANY = 32, 16, 4096
TYPES = "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"


def fnv64(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


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
many = numbers(6, MANY, BLOCK).numpy().astype(numpy.float32)
many[::2] = numpy.round(many[::2] * numpy.float32(8))
with open(pathlib.Path(__file__).parent / "quantized.txt", "w", encoding="utf-8") as out:
    for name in TYPES:
        print(name, quants.quantize(x, GGMLQuantizationType[name]).tobytes().hex(), file=out)
    for name in TYPES:
        print(name, f"{fnv64(quants.quantize(many, GGMLQuantizationType[name]).tobytes()):016x}", file=out)
