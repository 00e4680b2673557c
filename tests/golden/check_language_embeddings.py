#!/usr/bin/env python3
"""Compares attend with sentence-transformers: 25 random folders of Qwen3, and 25 of other causal language models, whose
hidden states are pooled.

    python3 check_language_embeddings.py [ATTEND]

Ids are equal, and no number of a vector is further from that in float64 than 8 times the largest error of the package
in float32, and the rounding of a number to float32.

Made with transformers 5.23.0, sentence-transformers 6.2.0, torch 2.15.0 on a CPU.
"""
import json
import pathlib
import sys
import tempfile

from check_static import ALLOWED, FOLDERS, embed, error, run
from language_folders import Language, Qwen3, variant


def check(family, i):
    v, lines = variant(family, i)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        v.write(folder)
        exact, single = v.encode(folder, lines, "float64"), v.encode(folder, lines, "float32")
        y = embed(name, lines)
        ids = [json.loads(x) for x in run("tokenize", "-m", name, "--json", lines=lines).splitlines()]
        wanted = v.ids(folder, lines)
    assert ids == wanted, (family.__name__, i, v.type, [(a, b) for a, b in zip(ids, wanted) if a != b][:3])
    assert y.shape == exact.shape, (y.shape, exact.shape)
    ours, theirs = error(y, exact).max(), error(single, exact).max()
    assert ours <= ALLOWED * theirs + 2.0**-24, (family.__name__, i, v.type, v.dtype, v.pooling, ours, theirs)
    return ours, theirs


if __name__ == "__main__":
    for family in Qwen3, Language:
        found = [check(family, i) for i in range(FOLDERS)]
        ours, theirs = (max(x) for x in zip(*found))
        print(f"{family.__name__}: {FOLDERS} folders, error {ours:.1e}, of the package in float32 {theirs:.1e}")
