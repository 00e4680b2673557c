#!/usr/bin/env python3
"""Writes interactions.csv, a made-up log, and ranking.txt: what is expected of it - histories, splits, ranks among all
items and expected measures among samples, scores of the baselines - by Python and NumPy alone. A line is a name and its
numbers. With the data sets also the measures of baselines on ml-100k:

    python3 make_ranking.py [../../../shared/data/sasrec/ml-100k/ml-100k.inter]

tests/recommend/interactions.c, holdout.c, ranking.c and baselines.c compare with it.
"""
import csv
import itertools
import math
import pathlib
import random
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
USERS, ITEMS, K, NEGATIVES = 40, 45, 8, 8
out = []


def line(name, numbers):
    out.append(name + " " + " ".join(repr(float(x)) if isinstance(x, float) else str(int(x)) for x in numbers))


# ---- the log: times with ties and out of order, repeats, duplicates; ids with spaces, commas, quotes

def made_up_log():
    r = random.Random(3)
    rows = []
    for user in range(USERS):
        start = r.randrange(1500)
        for _ in range(r.choice([1, 2, 3, 4, 8, 15, 30])):
            item = min(r.randrange(ITEMS), r.randrange(ITEMS))  # small ones more often
            rows.append((f"Ünal {user}", f'no. "{item}", new' if item % 7 == 3 else f"i{item}", start + r.randrange(60) * 10))
        if user % 6 == 0:
            rows.append((f"Ünal {user}", f"new {user}", start + 700))
    r.shuffle(rows)
    rows += r.sample(rows, 12)  # duplicates
    with open(HERE / "interactions.csv", "w", newline="", encoding="utf-8") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(["title", "userId", "itemId", "timestamp"])
        for i, (user, item, time) in enumerate(rows):
            writer.writerow([f"a, {i}", user, item, time])
    return rows


def numbered(names):
    """Numbers in the order of first lines."""
    numbers = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]


class Log:
    def __init__(self, rows):
        users, items = numbered([r[0] for r in rows]), numbered([r[1] for r in rows])
        self.times = [r[2] for r in rows]
        self.n_users, self.n_items = max(users) + 1, max(items) + 1
        in_file = [[] for _ in range(self.n_users)]
        for user, item, time in zip(users, items, self.times):
            in_file[user].append((time, item))
        self.unsorted = sum(b[0] < a[0] for h in in_file for a, b in zip(h, h[1:]))
        self.histories = [sorted(h, key=lambda x: x[0]) for h in in_file]  # stable
        self.ties = sum(a[0] == b[0] for h in self.histories for a, b in zip(h, h[1:]))
        self.repeats = sum(len(h) - len({x[1] for x in h}) for h in self.histories)
        self.duplicates = sum(len(h) - len(set(h)) for h in self.histories)

    def items(self, user):
        return [x[1] for x in self.histories[user]]


# ---- splits: training items of each user, and cases (user, history, target) of validation and test

def leave_one_out(log):
    train, cases = [], ([], [])
    for user in range(log.n_users):
        h = log.items(user)
        train.append(h if len(h) < 3 else h[:-2])
        if len(h) >= 3:
            cases[0].append((user, h[:-2], h[-2]))
            cases[1].append((user, h[:-1], h[-1]))
    return train, cases, [0, 0]


def by_time(log, valid_share=0.25, test_share=0.25):
    ordered = sorted(log.times)
    test = ordered[math.floor((1 - test_share) * len(ordered))]
    valid = ordered[math.floor((1 - test_share - valid_share) * len(ordered))]
    train, cases, without = [], ([], []), [0, 0]
    for user in range(log.n_users):
        h = log.histories[user]
        train.append([item for time, item in h if time < valid])
        for part, (low, high) in enumerate([(valid, test), (test, math.inf)]):
            first = next((i for i, (time, _) in enumerate(h) if low <= time < high), None)
            if len(h) < 3 or first is None:
                continue
            if first == 0:
                without[part] += 1
            else:
                cases[part].append((user, [x[1] for x in h[:first]], h[first][1]))
    return train, cases, without, valid, test


def describe(name, log, split):
    train, cases, without = split[:3]
    counts = np.bincount([i for h in train for i in h], minlength=log.n_items)
    line(name, [sum(len(h) > 0 for h in train), counts.sum(), (counts > 0).sum(), sum(max(len(h) - 1, 0) for h in train)]
         + [len(c) for c in cases] + [sum(counts[t] == 0 for _, _, t in c) for c in cases]
         + [sum(t in h for _, h, t in c) for c in cases] + [sum(len(log.items(u)) < 3 for u in range(log.n_users))]
         + without)
    for part, c in zip(["valid", "test"], cases):
        line(f"{name}-{part}", [x for user, h, target in c for x in (user, len(h), target)])
    return counts


# ---- measures

def scores_of(history, n_items):
    """Small whole numbers, with many ties: tests/recommend/ranking.c computes the same."""
    s = sum((i + 1) * item for i, item in enumerate(history))
    return np.array([(item * 7 + s * 3 + item * s) % 11 for item in range(n_items)], float)


def rank(scores, target, exclude):
    """By sorting, best first, equal scores in the order of items."""
    order = sorted((i for i in range(len(scores)) if i not in exclude), key=lambda i: (-scores[i], i))
    return order, order.index(target) + 1 if target in order else 0


def estimates(ranks, k):
    p, square = sum(0 < r <= k for r in ranks) / len(ranks), 1.96**2 / len(ranks)
    half = math.sqrt(p * (1 - p) * square + square**2 / 4)  # Wilson (1927)
    yield from (p, max(p + square / 2 - half, 0) / (1 + square), (p + square / 2 + half) / (1 + square))
    for measure in (lambda r: 1 / math.log2(1 + r), lambda r: 1 / r):
        x = np.array([measure(r) if 0 < r <= k else 0.0 for r in ranks])
        half = 1.96 * x.std(ddof=1) / math.sqrt(len(x))
        yield from (float(x.mean()), float(max(x.mean() - half, 0)), float(min(x.mean() + half, 1)))


def measure(name, score, n_items, counts, cases, k, exclude_seen, leave_out_unseen, write_ranks=True):
    ranks, listed, popular, repeats = [], set(), [], 0
    for user, h, target in cases:
        if leave_out_unseen and counts[target] == 0:
            continue
        order, r = rank(score(h, n_items), target, set(h) if exclude_seen else set())
        ranks.append(r)
        listed.update(order[:k])
        popular += [counts[i] for i in order[:k]]
        repeats += target in h
    if write_ranks:
        line(name + "-ranks", ranks)
    line(name, [len(ranks), repeats, *estimates(ranks, k), len(listed) / n_items, float(np.mean(popular))])


# ---- what samples are expected to show: the probability of rank 1 to k, and the deviation of a mean over draws

def hypergeometric_at_most(k, before, eligible, n):
    return sum(math.comb(before, i) * math.comb(eligible - before, n - i) for i in range(k)) / math.comb(eligible, n)


def binomial_at_most(k, share, n):
    return sum(math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k))


def popular_at_most_one(before, weights):
    """Rank 1 among two different negatives drawn by weight: neither is before the target."""
    total = sum(weights.values())
    after = [i for i in weights if i not in before]
    return sum(weights[a] / total * weights[b] / (total - weights[a]) for a, b in itertools.permutations(after, 2))


def expected(log, train, cases, k):
    of_log = np.bincount([i for u in range(log.n_users) for i in log.items(u)], minlength=log.n_items)
    probabilities = ([], [], [])
    for user, h, target in cases:
        scores = scores_of(h, log.n_items)
        before = {i for i in range(log.n_items) if (-scores[i], i) < (-scores[target], target)}
        eligible = set(range(log.n_items)) - set(train[user])
        probabilities[0].append(binomial_at_most(k, len(before & eligible) / len(eligible), NEGATIVES))
        eligible = set(range(log.n_items)) - set(log.items(user))
        probabilities[1].append(hypergeometric_at_most(k, len(before & eligible), len(eligible), NEGATIVES))
        probabilities[2].append(popular_at_most_one(before & eligible, {i: of_log[i] for i in eligible}))
    for kind, p in enumerate(map(np.array, probabilities)):
        line(f"expected-{kind + 1}", [float(p.mean()), float(math.sqrt((p * (1 - p)).sum()) / len(p))])


# ---- baselines

def by_popularity(counts):
    return -1 / (1 + counts.astype(np.float32))


def neighbors(train, n_items, n, decay):
    """Dense, with the sums in the order of the history and in the types of the library."""
    has = np.zeros((len(train), n_items))
    for user, h in enumerate(train):
        has[user, h] = 1
    both = has.T @ has
    users = np.maximum(both.diagonal(), 1)
    similarity = (both / np.sqrt(np.outer(users, users))).astype(np.float32)
    np.fill_diagonal(similarity, 0)
    for i in range(n_items):
        order = np.lexsort((np.arange(n_items), -similarity[i]))
        similarity[i, order[n:]] = 0
    counts = np.bincount([i for h in train for i in h], minlength=n_items)

    def score(history, n_items):
        scores, weight = np.zeros(n_items, np.float32), 1.0
        for item in reversed(history):
            scores += (weight * similarity[item].astype(float)).astype(np.float32)
            weight *= decay
        return np.where(scores > 0, scores, by_popularity(counts))

    return score


def ease(train, n_items, l2, decay):
    """Steck 2019, in closed form; items without an action are last."""
    has = np.zeros((len(train), n_items))
    for user, h in enumerate(train):
        has[user, h] = 1
    inverse = np.linalg.inv(has.T @ has + l2 * np.eye(n_items))
    weights = -inverse / inverse.diagonal()
    np.fill_diagonal(weights, 0)
    unseen = has.sum(0) == 0

    def score(history, n_items):
        last = {item: decay**age for age, item in reversed(list(enumerate(reversed(history))))}
        return np.where(unseen, -np.inf, sum(weight * weights[item] for item, weight in last.items()))

    return score


def vector(item):
    return np.zeros(3) if item % 6 == 5 else np.array([1 + item % 3, item % 5 - 2, item % 4 - 1], float)


def content(history, n_items, decay, counts):
    unit = [vector(i) / max(np.linalg.norm(vector(i)), 1e-300) for i in range(n_items)]
    mean = sum(decay**age * unit[i] for age, i in enumerate(reversed(history)))
    if not mean.any():
        return by_popularity(counts)
    return np.array([unit[i] @ mean / np.linalg.norm(mean) if unit[i].any() else by_popularity(counts)[i] - 2
                     for i in range(n_items)])


def baselines(name, train, cases, counts, n_items):
    score = neighbors(train, n_items, 4, 0.7)
    for user, h, _ in cases[:6]:
        line(f"{name}-neighbors-{user}", map(float, score(h, n_items)))
        line(f"{name}-content-{user}", map(float, content(h, n_items, 0.9, counts)))
        for decay in 1, 0.7:
            line(f"{name}-ease-{decay}-{user}", map(float, ease(train, n_items, 2, decay)(h, n_items)))


# ---- all of it

rows = made_up_log()
log = Log(rows)
line("info", [log.n_users, log.n_items, len(rows), max(map(len, log.histories)), log.unsorted, log.ties, log.repeats,
              log.duplicates])
for user in range(log.n_users):
    line(f"history-{user}", log.items(user))
splits = {"leave-one-out": leave_one_out(log), "time": by_time(log)}
line("points", map(float, splits["time"][3:]))
for name, split in splits.items():
    counts = describe(name, log, split)
    for exclude, leave_out in itertools.product([0, 1], [0, 1]):
        measure(f"{name}-{exclude}-{leave_out}", scores_of, log.n_items, counts, split[1][1], K, exclude, leave_out)
    baselines(name, split[0], split[1][1], counts, log.n_items)
    if name == "leave-one-out":
        few = [c for c in split[1][1] if log.n_items - len(set(log.items(c[0]))) >= NEGATIVES]
        line("enough", [len(few) == len(split[1][1])])
        expected(log, split[0], split[1][1], 1)

if len(sys.argv) > 1:
    fields = [row.split("\t") for row in open(sys.argv[1], encoding="utf-8").read().splitlines()[1:]]
    ml = Log([(f[0], f[1], float(f[3])) for f in fields])
    train, cases, _ = leave_one_out(ml)
    counts = np.bincount([i for h in train for i in h], minlength=ml.n_items)
    measure("ml-100k-popularity", lambda h, n: counts, ml.n_items, counts, cases[1], 10, True, False, False)
    measure("ml-100k-neighbors", neighbors(train, ml.n_items, 100, 0.6), ml.n_items, counts, cases[1], 10, True, False,
            False)
    measure("ml-100k-ease", ease(train, ml.n_items, 500, 1), ml.n_items, counts, cases[1], 10, True, False, False)
(HERE / "ranking.txt").write_text("\n".join(out) + "\n")
