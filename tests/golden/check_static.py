#!/usr/bin/env python3
"""Compares attend with model2vec and sentence-transformers: 25 random folders of static embeddings of each.

    python3 check_static.py [ATTEND]

Ids are equal, and no number of a vector is further from that in float64 than 8 times the largest error of the package
in float32, and the rounding of a number to float32. Prints a line for each family; fails at the first difference.

Made with model2vec 0.10.0, sentence-transformers 6.2.0, tokenizers 0.23.3 on a CPU.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy

from static_folders import Model2vec, Static, variant

ATTEND = sys.argv[1] if len(sys.argv) > 1 else "build/attend"
FOLDERS, ALLOWED = 25, 8


def run(*command, lines):
    text = "".join(t + "\n" for t in lines)
    return subprocess.run([ATTEND, *command], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout


def embed(folder, lines):
    path = folder + "/vectors.npy"
    run("embed", "-m", folder, "--format", "npy", "-o", path, lines=lines)
    return numpy.load(path)


def error(y, exact):
    """The largest error of each text relative to its largest number"""
    scale = numpy.maximum(numpy.abs(exact).max(1, keepdims=True), 1e-30)
    return numpy.abs(y - exact) / scale


def check(family, i):
    v, lines = variant(family, i)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        v.write(folder)
        exact, single = v.encode(folder, lines, "float64"), v.encode(folder, lines, "float32")
        y = embed(name, lines)
        counts = [json.loads(x)["tokens"] for x in run("embed", "-m", name, "--tokens", lines=lines).splitlines()]
        wanted = [len(x) for x in v.ids(folder, lines)]
    assert counts == wanted, (family.__name__, i, [(a, b) for a, b in zip(counts, wanted) if a != b])
    assert y.shape == exact.shape, (y.shape, exact.shape)
    ours, theirs = error(y, exact).max(), error(single, exact).max()
    assert ours <= ALLOWED * theirs + 2.0**-24, (family.__name__, i, v.kind, v.dtype, ours, theirs)
    return ours, theirs


if __name__ == "__main__":
    for family in Model2vec, Static:
        found = [check(family, i) for i in range(FOLDERS)]
        ours, theirs = (max(x) for x in zip(*found))
        print(f"{family.__name__}: {FOLDERS} folders, error {ours:.1e}, of the package in float32 {theirs:.1e}")
