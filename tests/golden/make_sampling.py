#!/usr/bin/env python3
"""Writes sampling.txt: probabilities of tokens by the logits processors of transformers. For each case a line of
temperature, top_k, top_p, min_p, repetition_penalty (0: not set); the number of ids that occurred and these ids; 24
logits; 24 probabilities.

    python3 make_sampling.py

Made with transformers 5.23.0, torch 2.15.0 on a CPU. No case has a sum of probabilities near top_p, nor a share near
min_p, so that rounding does not decide.
"""
import pathlib

import torch
from transformers.generation import logits_process as lp

CASES = [
    (0, 0, 0, 0, 0, []),
    (0.5, 0, 0, 0, 0, []),
    (2.0, 0, 0, 0, 0, []),
    (0, 1, 0, 0, 0, []),
    (0, 5, 0, 0, 0, []),
    (0, 24, 0, 0, 0, []),
    (0, 100, 0, 0, 0, []),
    (0, 0, 0.5, 0, 0, []),
    (0, 0, 0.88, 0, 0, []),
    (0, 0, 0.01, 0, 0, []),
    (0, 0, 0, 0.1, 0, []),
    (0, 0, 0, 0.5, 0, []),
    (0, 0, 0, 0, 1.5, [3, 5, 5, 8]),
    (0, 0, 0, 0, 0.7, [0, 1, 23]),
    (1.7, 10, 0.8, 0.05, 1.2, [2, 7, 11, 13]),
    (0.7, 12, 0.95, 0.2, 1.1, [1, 4]),
    (1.3, 6, 0.99, 0, 0, []),
    (3.0, 0, 0.85, 0.3, 0, []),
    (1.0, 4, 0, 0, 0, "ties"),
]
VOCABULARY = 24


def logits(case, ties):
    x = torch.tensor([((i * 37 + case * 101) % 97) / 97 * 6 - 3 for i in range(VOCABULARY)])
    if ties:  # several are equal to the fourth
        order = x.argsort(descending=True)
        x[order[2:7]] = x[order[3]].clone()
    return x


def check_margin(scores, top_p, min_p):
    p = torch.sort(scores.softmax(-1)[0], descending=True).values
    if top_p:
        sums = p.cumsum(0)
        assert (sums - top_p).abs().min() > 1e-4, (sums, top_p)
    if min_p:
        assert (p / p[0] - min_p).abs().min() > 1e-4, (p / p[0], min_p)


def main():
    lines = []
    for k, (temperature, top_k, top_p, min_p, penalty, seen) in enumerate(CASES):
        x = logits(k, seen == "ties")
        ids = [] if seen == "ties" else seen
        history = torch.tensor([ids], dtype=torch.long)
        scores = x[None].clone()
        if penalty:
            scores = lp.RepetitionPenaltyLogitsProcessor(penalty)(history, scores)
        if temperature:
            scores = lp.TemperatureLogitsWarper(temperature)(history, scores)
        if top_k:
            scores = lp.TopKLogitsWarper(top_k)(history, scores)
        if top_p:
            check_margin(scores, top_p, 0)
            scores = lp.TopPLogitsWarper(top_p)(history, scores)
        if min_p:
            check_margin(scores, 0, min_p)
            scores = lp.MinPLogitsWarper(min_p)(history, scores)
        p = scores.double().softmax(-1)[0]
        lines.append(f"{temperature} {top_k} {top_p} {min_p} {penalty}")
        lines.append(" ".join(map(str, [len(ids), *ids])))
        lines.append(" ".join(f"{v:.9g}" for v in x.tolist()))
        lines.append(" ".join(f"{v:.6g}" for v in p.tolist()))
    (pathlib.Path(__file__).parent / "sampling.txt").write_text("\n".join(lines) + "\n")


main()
