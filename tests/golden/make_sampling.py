#!/usr/bin/env python3
"""Writes sampling.txt: probabilities of tokens by the logits processors of transformers. For each case a line of
temperature, top_k, top_p, min_p, repetition_penalty (0: not set); the number of ids that occurred and these ids; presence
and frequency penalty, of the last m of these ids, and m; the number of biases, and id and bias of each; 24 logits; 24
probabilities.

The presence and the frequency penalty, which transformers has not, are computed in float64 as the reference of OpenAI's
interface defines them: mu[j] - c[j] * frequency - (c[j] > 0) * presence.

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
    (0, 0, 0, 0, 0, [3, 5, 5, 8, 8, 8], 0.7, 0, 6),
    (0, 0, 0, 0, 0, [3, 5, 5, 8, 8, 8], 0, 0.6, 6),
    (0, 0, 0, 0, 0, [3, 3, 5, 5, 8, 5, 8], 1.5, 0.4, 4),
    (0, 0, 0, 0, 0, [0, 23, 23], -1.1, -0.9, 3),
    (0, 0, 0, 0, 0, [], 0, 0, 0, {4: 1.5, 0: -2, 23: 0.25}),
    (0, 0, 0, 0, 0, [], 0, 0, 0, {1: float("-inf"), 20: float("-inf"), 7: -100}),
    (0, 0, 0, 0, 0, [], 0, 0, 0, {9: 100}),
    (1.7, 9, 0.8, 0.05, 1.2, [2, 7, 11, 13, 13, 7, 7], 0.5, 0.3, 5, {7: 4, 2: float("-inf"), 13: 2.5}),
    (0.8, 0, 0.9, 0.02, 1.4, [1, 4, 4, 9], 0.9, -0.2, 3, {4: -3, 9: 5}),
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
    for k, (temperature, top_k, top_p, min_p, penalty, seen, *more) in enumerate(CASES):
        presence, frequency, generated, bias = (*more, *(0, 0, 0, {})[len(more) :])
        x = logits(k, seen == "ties")
        ids = [] if seen == "ties" else seen
        history = torch.tensor([ids], dtype=torch.long)
        scores = x[None].clone()
        if bias:
            scores = lp.SequenceBiasLogitsProcessor({(id,): float(b) for id, b in bias.items()})(history, scores)
        if penalty:
            scores = lp.RepetitionPenaltyLogitsProcessor(penalty)(history, scores)
        if generated:
            count = torch.bincount(history[0, -generated:], minlength=VOCABULARY).double()
            scores = (scores.double() - count * frequency - (count > 0) * presence).float()
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
        lines.append(f"{presence} {frequency} {generated}")
        lines.append(" ".join(map(str, [len(bias), *(v for item in bias.items() for v in item)])))
        lines.append(" ".join(f"{v:.9g}" for v in x.tolist()))
        lines.append(" ".join(f"{v:.6g}" for v in p.tolist()))
    (pathlib.Path(__file__).parent / "sampling.txt").write_text("\n".join(lines) + "\n")


main()
