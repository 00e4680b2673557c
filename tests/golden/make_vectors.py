#!/usr/bin/env python3
"""Writes vectors.txt: codes of vectors by sentence-transformers' quantize_embeddings, and what its semantic_search_faiss
and semantic_search_usearch find. A line is a name and its numbers: PRECISION.N.DIM.own, with ranges of the vectors
themselves, and .calibrated, with those of others; PRECISION.rows and .scores of three queries, whose numbers
are in "queries", five hits each.

    pip install faiss-cpu==1.15.1 usearch==2.26.6
    tests/golden/make_vectors.py

Made with sentence-transformers 6.2.0 and NumPy 2 on x86-64. tests/core/vectors.c makes the same vectors.
"""
import pathlib

import numpy as np
from sentence_transformers.util.quantization import (quantize_embeddings, semantic_search_faiss,
                                                     semantic_search_usearch)

from check_numbers import numbers

PRECISIONS = ["int8", "uint8", "binary", "ubinary"]
ROWS, DIM, QUERIES, K = 300, 72, 70, 5
lines = []


def store(name, values):
    lines.append(f"{name} {' '.join(f'{float(v):.9g}' for v in np.asarray(values).flatten())}\n")


def plain(seed, n, dim):
    return numbers(seed, n, dim).numpy().astype(np.float32)


def vectors(seed, n, dim):
    x = plain(seed, n, dim)
    x[:, 1] = 0.25
    x[:, 2] *= np.float32(1e-44)
    x[:, 3] *= np.float32(3e37)
    x[0, 4] = -0.0
    return x


for n, dim in [(3, 5), (7, 16), (5, 23), (110, 12)]:
    x = vectors(1, n, dim)
    for precision in PRECISIONS:
        name = f"{precision}.{n}.{dim}"
        store(f"{name}.own", quantize_embeddings(x, precision))
        store(f"{name}.calibrated", quantize_embeddings(x, precision, calibration_embeddings=vectors(2, 9, dim)))
special = np.array([[np.nan, np.inf, -np.inf, 1, -1, 0, -0.0, 1e-45]], np.float32)
store("ubinary.special", quantize_embeddings(special, "ubinary"))

corpus, queries = plain(7, ROWS, DIM), plain(8, QUERIES, DIM)
# Of rows that differ in equally many bits any may be candidates, so queries are those without such rows at the end of
# their candidates.
differ = -np.sort(-((queries[:, None] > 0) == (corpus[None] > 0)).sum(-1), 1)
chosen = np.flatnonzero(differ[:, 2 * K - 1] > differ[:, 2 * K])[:3]
store("queries", chosen)
ranges = np.vstack((corpus.min(0), corpus.max(0)))
for precision in PRECISIONS:
    search = semantic_search_faiss if precision.startswith("u") else semantic_search_usearch
    codes = quantize_embeddings(corpus, precision, ranges=ranges)
    hits, _ = search(queries[chosen], codes, corpus_precision=precision, top_k=K, ranges=ranges, rescore_multiplier=2)
    store(f"{precision}.rows", [[h["corpus_id"] for h in row] for row in hits])
    store(f"{precision}.scores", [[h["score"] for h in row] for row in hits])

pathlib.Path(__file__).with_name("vectors.txt").write_text("".join(lines))
