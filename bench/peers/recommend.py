#!/usr/bin/env python3
"""Sequential recommendation with PyTorch and attend in turn, for bench/accept/e.

    recommend.py epoch LOG      histories a second of an epoch of SASRec with the paper's block and loss (Kang, McAuley
                                2018: width 50, two blocks, at most 50 items, dropout 0.5, one negative, Adam), of LOG's
                                histories, a line each action, by user and time: PyTorch with every history padded to 50
                                as its users write it; PyTorch on rows without padding, which only attention has, up to
                                the longest of the batch; attend
    recommend.py top            milliseconds for the 100 best of a million items of width 64, of 1 and of 256 histories
"""
import argparse
import json
import os

import torch
from torch import nn
from torch.nn import functional as F

from common import BUILD, best_time, run_json

WIDTH, LONGEST, BATCH, BLOCKS, DROPOUT = 50, 50, 128, 2, 0.5
TRIES = 2  # of each in a round, of which the best counts


def read(path):
    """The histories for training of two or more items, numbered from 1: without the last two of each user who has three
    actions; the number of items."""
    users, items = {}, {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            user, item = line.split()[:2]
            users.setdefault(user, []).append(items.setdefault(item, len(items) + 1))
    train = [h[:-2] if len(h) >= 3 else h for h in users.values()]
    return [h for h in train if len(h) > 1], len(items)


class SasRec(nn.Module):
    """Of a batch that is padded on the left, or of its rows that are not padding."""

    def __init__(self, items):
        super().__init__()
        self.item, self.position = nn.Embedding(items + 1, WIDTH, padding_idx=0), nn.Embedding(LONGEST, WIDTH)
        self.q, self.k, self.v = (nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(BLOCKS)) for _ in range(3))
        self.before, self.middle = (nn.ModuleList(nn.LayerNorm(WIDTH, 1e-8) for _ in range(BLOCKS)) for _ in range(2))
        self.ffn = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Dropout(DROPOUT),
                                               nn.Linear(WIDTH, WIDTH), nn.Dropout(DROPOUT)) for _ in range(BLOCKS))
        self.last = nn.LayerNorm(WIDTH, 1e-8)

    def attend(self, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, mask, dropout_p=DROPOUT if self.training else 0)

    def padded(self, x):
        real = (x > 0).unsqueeze(-1)
        causal = torch.ones(LONGEST, LONGEST, dtype=torch.bool).tril()
        h = F.dropout(self.item(x) * WIDTH**0.5 + self.position.weight, DROPOUT, self.training) * real
        for i in range(BLOCKS):
            q = self.before[i](h)
            z = self.middle[i](q + self.attend(self.q[i](q), self.k[i](h), self.v[i](h), causal))
            h = (z + self.ffn[i](z)) * real
        return self.last(h)

    def packed(self, x):
        """x [batch, longest of the batch], padded on the left -> rows of items that are not padding"""
        real = x > 0
        n = x.shape[1]
        mask = torch.ones(n, n, dtype=torch.bool).tril() & real[:, None, :] | torch.eye(n, dtype=torch.bool)
        at = torch.arange(LONGEST - n, LONGEST).expand_as(x)[real]
        h = F.dropout(self.item(x[real]) * WIDTH**0.5 + self.position(at), DROPOUT, self.training)

        def grid(rows):
            return rows.new_zeros(*x.shape, WIDTH).masked_scatter(real.unsqueeze(-1), rows)

        for i in range(BLOCKS):
            q = self.before[i](h)
            a = self.attend(grid(self.q[i](q)), grid(self.k[i](h)), grid(self.v[i](h)), mask)
            z = self.middle[i](q + a[real])
            h = z + self.ffn[i](z)
        return self.last(h)


def binary(h, p, n):
    return (F.softplus(-(h * p).sum(-1)) + F.softplus((h * n).sum(-1))).mean()


def torch_epoch(histories, items, packed):
    """A function that runs an epoch."""
    torch.manual_seed(1)
    model = SasRec(items).train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, (0.9, 0.98), fused=True)
    rows = [torch.tensor(h[-LONGEST - 1:]) for h in histories]

    def batch(chosen):
        n = max(len(r) - 1 for r in chosen) if packed else LONGEST
        x, y = torch.zeros(2, len(chosen), n, dtype=torch.long)
        for i, r in enumerate(chosen):
            x[i, n - len(r) + 1:], y[i, n - len(r) + 1:] = r[:-1], r[1:]
        return x, y

    def step(chosen):
        x, y = batch(chosen)
        real = x > 0
        negative = torch.randint(1, items + 1, (int(real.sum()),))
        optimizer.zero_grad()
        h = model.packed(x) if packed else model.padded(x)[real]
        binary(h, model.item(y[real]), model.item(negative)).backward()
        optimizer.step()

    def epoch():
        order = torch.randperm(len(rows)).tolist()
        for i in range(0, len(order), BATCH):
            step([rows[j] for j in order[i:i + BATCH]])

    return epoch


def epoch(path, rounds):
    histories, items = read(path)
    sides = {"PyTorch, padded": torch_epoch(histories, items, False),
             "PyTorch, packed": torch_epoch(histories, items, True)}
    found = dict.fromkeys([*sides, "attend"], 0.0)
    for _ in range(rounds):
        for name, run in sides.items():
            found[name] = max(found[name], len(histories) / best_time(run, 0, TRIES))
        line = run_json(BUILD / "bench" / "bench_recommend", "epoch", path, TRIES)[0]
        found["attend"] = max(found["attend"], line["histories_per_second"])
    print(json.dumps({"histories": len(histories), "items": items, "histories_per_second": found}))


def top(rounds):
    n, width = 10**6, 64
    table = torch.randn(n, width)
    for histories in 1, 256:
        q = torch.randn(histories, width)
        found = {"PyTorch": float("inf"), "attend": float("inf")}
        for _ in range(rounds):
            # in parts of 32 histories, as all scores of 256 would be a gigabyte
            run = lambda: [torch.topk(part @ table.T, 100) for part in q.split(32)]
            found["PyTorch"] = min(found["PyTorch"], 1e3 * best_time(run, 0, TRIES))
            line = run_json(BUILD / "bench" / "bench_recommend", "top", n, width, histories, TRIES)[0]
            found["attend"] = min(found["attend"], line["milliseconds"])
        print(json.dumps({"items": n, "width": width, "histories": histories, "milliseconds": found}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["epoch", "top"])
    parser.add_argument("log", nargs="?")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    if (args.what == "epoch") != bool(args.log):
        parser.error("epoch needs a LOG, top has none")
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    epoch(args.log, args.rounds) if args.what == "epoch" else top(args.rounds)


if __name__ == "__main__":
    main()
