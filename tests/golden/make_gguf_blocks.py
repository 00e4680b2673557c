#!/usr/bin/env python3
"""Writes gguf_blocks.txt for tests/core/dequantize.c: what the package of llama.cpp unpacks from blocks of random bytes.

    pip install gguf==0.19.*
    tests/golden/make_gguf_blocks.py

A line has the name of a type and the 64-bit FNV-1a hash of the bytes of the floats of BLOCKS blocks. The bytes of the blocks
are those of the test; factors of f16 are below 2.
"""
import numpy
from gguf import GGMLQuantizationType, quants
from gguf.constants import GGML_QUANT_SIZES

from text_lines import HERE

BLOCKS = 64
FACTORS = {"Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
           "IQ4_NL": [0], "IQ4_XS": [0]}


def fnv64(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


def main():
    with open(HERE / "gguf_blocks.txt", "w", encoding="utf-8") as out:
        for name, factors in FACTORS.items():
            kind = GGMLQuantizationType[name]
            size = GGML_QUANT_SIZES[kind][1]
            state, blocks = 1, []
            for _ in range(BLOCKS):
                block = bytearray()
                for _ in range(size):
                    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                    block.append(state >> 56)
                for at in factors:
                    block[at + 1] &= 0xBF
                blocks.append(block)
            x = quants.dequantize(numpy.frombuffer(b"".join(blocks), numpy.uint8).reshape(1, -1), kind)
            print(name, f"{fnv64(x.astype(numpy.float32).tobytes()):016x}", file=out)


if __name__ == "__main__":
    main()
