#!/usr/bin/env python3
"""Attention forward, f32: attend and PyTorch's scaled_dot_product_attention, turn and turn about in one run.

Each round gives both sides each shape once: `attend bench attention` as a program (its result is verified before it
is timed, in the first round), PyTorch in this process. Best time of all rounds on both sides; the peak is the highest
that attend measured in the whole run. Causal work counts as half.
"""
import argparse
import json
import time

import torch
from torch.nn.functional import scaled_dot_product_attention

from common import BUILD, PAUSE, best_time, run_json, table

# name, batch, heads, key and value heads, tq, tk, dim, vdim, causal. The first two are those that acceptance asks for.
SHAPES = [
    ("1024", 1, 12, 12, 1024, 1024, 64, 64, False),
    ("1024 causal", 1, 12, 12, 1024, 1024, 64, 64, True),
    ("batch of 8, 128", 8, 12, 12, 128, 128, 64, 64, False),
    ("batch of 32, 32", 32, 12, 12, 32, 32, 32, 32, False),
    ("batch of 4, 197", 4, 12, 12, 197, 197, 64, 64, False),
    ("512", 1, 12, 12, 512, 512, 64, 64, False),
    ("2048", 1, 8, 8, 2048, 2048, 128, 128, False),
    ("2048 causal", 1, 8, 8, 2048, 2048, 128, 128, True),
    ("4096", 1, 4, 4, 4096, 4096, 64, 64, False),
    ("4096 causal", 1, 4, 4, 4096, 4096, 64, 64, True),
    ("16384 causal", 1, 1, 1, 16384, 16384, 64, 64, True),
    ("head size 32", 1, 12, 12, 1024, 1024, 32, 32, False),
    ("head size 80", 1, 12, 12, 1024, 1024, 80, 80, False),
    ("head size 256", 1, 4, 4, 1024, 1024, 256, 256, False),
    ("values of 128", 1, 12, 12, 1024, 1024, 64, 128, False),
    ("grouped, causal", 1, 32, 8, 1024, 1024, 128, 128, True),
    ("cross", 1, 8, 8, 32, 1500, 64, 64, False),
    ("one query", 1, 32, 32, 1, 4096, 128, 128, False),
    ("one query, grouped", 1, 32, 8, 1, 4096, 128, 128, False),
    ("one query, batch of 8", 8, 32, 32, 1, 1024, 128, 128, False),
]
REFERENCE_LIMIT = 2e10  # operations that the double-precision reference takes seconds for, not minutes


class Shape:
    peak = 0.0  # GFLOP/s, of all shapes together

    def __init__(self, name, batch, heads, kv_heads, tq, tk, dim, vdim, causal):
        self.name, self.causal = name, causal
        self.text = f"B{batch} H{heads}" + (f"/{kv_heads}" if kv_heads != heads else "") + f" {tq}x{tk} D{dim}"
        self.text += f"/{vdim}" if vdim != dim else ""
        self.flops = 2 * batch * heads * tq * tk * (dim + vdim) * (0.5 if causal else 1)
        self.options = ["--batch", batch, "--heads", heads, "--kv-heads", kv_heads, "--tq", tq, "--tk", tk,
                        "--dim", dim, "--vdim", vdim] + (["--causal", "top-left"] if causal else [])
        self.sizes = (batch, heads, tq, dim), (batch, kv_heads, tk, dim), (batch, kv_heads, tk, vdim)
        self.ours = self.theirs = float("inf")  # ms

    def measure_attend(self, threads, verify):
        quiet = [] if verify and self.flops <= REFERENCE_LIMIT else ["--no-verify"]
        [found] = run_json(BUILD / "attend", "bench", "attention", *self.options, "--dtype", "f32", "--pass", "fwd",
                           "--threads", threads, *quiet, "--json")
        self.ours = min(self.ours, found["ms"])
        Shape.peak = max(Shape.peak, found["peak_gflops"])

    def measure_torch(self, seconds):
        q, k, v = (torch.randn(size) for size in self.sizes)
        grouped = q.shape[1] != k.shape[1]
        with torch.no_grad():
            call = lambda: scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=grouped)
            call()
            self.theirs = min(self.theirs, 1e3 * best_time(call, seconds))

    def share(self, ms):
        return self.flops / (ms * 1e6) / self.peak

    def row(self):
        return [self.name, self.text, f"{self.ours:.3f}", f"{self.theirs:.3f}", f"{100 * self.share(self.ours):.1f} %",
                f"{100 * self.share(self.theirs):.1f} %", f"{self.theirs / self.ours:.2f}"]

    def object(self):
        return {"name": self.name, "shape": self.text, "causal": self.causal, "ms": round(self.ours, 4),
                "torch_ms": round(self.theirs, 4), "peak_share": round(self.share(self.ours), 4),
                "torch_peak_share": round(self.share(self.theirs), 4), "ratio": round(self.theirs / self.ours, 3)}


HEAD = ["attention", "shape", "attend ms", "PyTorch ms", "of peak", "PyTorch", "times as fast"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5, help="of PyTorch a shape and round")
    parser.add_argument("--first", type=int, default=len(SHAPES), metavar="N", help="only the first N shapes")
    parser.add_argument("--json", action="store_true", help="one object a line")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    shapes = [Shape(*s) for s in SHAPES[:args.first]]
    for turn in range(args.rounds):
        for shape in shapes:
            time.sleep(PAUSE)
            shape.measure_attend(args.threads, verify=turn == 0)
            shape.measure_torch(args.seconds)
    if args.json:
        for shape in shapes:
            print(json.dumps(shape.object()))
    else:
        print(f"PyTorch {torch.__version__}, {args.threads} threads, best of {args.rounds} rounds")
        print(table(HEAD, [shape.row() for shape in shapes]))


if __name__ == "__main__":
    main()
