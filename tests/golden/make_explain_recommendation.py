#!/usr/bin/env python3
"""Writes tests/golden/explain/figures_recommendation.txt: the figures that `attend explain recommendation` must show of
examples/shop.txt, and of what a model has to beat, computed here from the definitions. (The model's own are compared
with PyTorch in tests/model.)
Usage: python3 tests/golden/make_explain_recommendation.py"""
import math
import pathlib

here = pathlib.Path(__file__).parent
histories = [line.split() for line in (here / "../../examples/shop.txt").read_text().splitlines()]
names = {}
for _, *items in histories:
    for item in items:
        names.setdefault(item, len(names))
users = [[names[item] for item in items] for _, *items in histories]
train, last = [u[:-2] for u in users], [u[-1] for u in users]
lines = []

for customer, *items in histories[:2]:
    lines.append(f"{customer} {' '.join(items)}")
actions = [sum(map(len, train)), len(users), len(users)]
lines.append(f"{actions[0]} + {actions[1]} + {actions[2]} = {sum(actions)}")
counts = [sum(u.count(item) for u in train) for item in range(len(names))]
for row in (counts[:8], counts[8:]):  # as many columns as fit
    lines.append("count " + " ".join(map(str, row)))
second = histories[1][1:-2]
lines.append("input " + " ".join(second[:-1]))
lines.append("target " + " ".join(second[1:]))


def measure(label, score):
    """HR@1 and NDCG@5 of the last items among all; equal scores by the number of the item."""
    hits = gain = 0
    for user, target in zip(users, last):
        scores = score(user[:-1])
        rank = 1 + sum(s > scores[target] or (s == scores[target] and i < target) for i, s in enumerate(scores))
        hits += rank == 1
        gain += 1 / math.log2(1 + rank) if rank <= 5 else 0
    values = hits / len(users), gain / len(users)
    assert all(abs(v * 100 % 1 - 0.5) > 0.01 for v in values), values  # rounded the same way by f32
    lines.append(f"{label} " + " ".join(f"{v:.2f}" for v in values))


measure("popularity", lambda history: counts)

having = [{n for n, u in enumerate(train) if item in u} for item in range(len(names))]


def cosine(a, b):
    return 0 if a == b or not having[a] or not having[b] else len(having[a] & having[b]) / math.sqrt(
        len(having[a]) * len(having[b]))


measure("item neighbors", lambda history: [
    sum(0.6 ** (len(history) - 1 - t) * cosine(item, j) for t, item in enumerate(history)) for j in range(len(names))])

(here / "explain/figures_recommendation.txt").write_text("".join(f"recommendation|{line}\n" for line in lines))
