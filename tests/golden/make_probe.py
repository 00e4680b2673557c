#!/usr/bin/env python3
"""Writes probe.txt: labeled vectors, and what scikit-learn's LogisticRegression makes of them: coefficients and
intercepts of four classes and of two, for several C, with equal and with balanced class weights.

    python3 make_probe.py        # needs scikit-learn

tests/model/probe.c compares with it.
"""
import pathlib

import numpy as np
from sklearn.linear_model import LogisticRegression

HERE = pathlib.Path(__file__).parent
N, DIM, CLASSES = 61, 6, 4  # no multiple of a block or of a tile
random = np.random.default_rng(5)
# Unequal classes, which overlap, around means that are far from 0, as those of embeddings are.
labels = random.choice(CLASSES, N, p=[0.5, 0.25, 0.15, 0.1])
means = random.normal(size=(CLASSES, DIM)) + 3
vectors = (means[labels] + random.normal(size=(N, DIM))).astype(np.float32)

lines = []


def line(name, numbers):
    lines.append(name + " " + " ".join(f"{x:.9g}" for x in np.ravel(numbers)))


def fit(name, y, c, weight=None):
    model = LogisticRegression(C=c, class_weight=weight, solver="newton-cholesky", tol=1e-13, max_iter=1000)
    model.fit(vectors.astype(np.float64), y)
    line(f"{name}-coef", model.coef_)
    line(f"{name}-intercept", model.intercept_)


line("labels", labels)
line("vectors", vectors)
for c in (0.01, 1, 30):
    fit(f"four-{c}", labels, c)
    fit(f"two-{c}", labels > 0, c)
fit("balanced", labels, 1, "balanced")
fit("balanced-two", labels > 0, 1, "balanced")
(HERE / "probe.txt").write_text("\n".join(lines) + "\n")
