#!/usr/bin/env python3
"""Attention: attend beside PyTorch as its users write it, forward and backward, turn and turn about in one run.

Each round gives both sides each shape once: attend through `attend bench attention --shapes -` (which verifies its
result before it times it, in the first round), PyTorch in this process: scaled_dot_product_attention; for additive
attention the formula with tanh over [Tq, Tk, A]; for general attention matrix products. Best time of all rounds on both
sides; the peak is the highest of all rounds, over runs as long as the attention's. One query reads keys and values from
a cache, as a decoder has them, and PyTorch reads tensors; memory that others use too changes its speed within seconds,
so attend measures its share of the read bandwidth by turns with a pass over memory, which also means that keys and
values are in no cache then, and PyTorch's best time is held against the rate of those passes. Causal work counts as
half. A shape that attend refuses is listed with what it said.
"""
import argparse
import json
import math
import re
import statistics
import time

import torch
from torch.nn.functional import scaled_dot_product_attention

from common import PAUSE, Attend, Refused, best_time, table


def shape(name, batch, heads, tq, tk, dim, only_forward=False, **fields):
    return {"name": name, "batch": batch, "heads": heads, "tq": tq, "tk": tk, "dim": dim,
            "only_forward": only_forward, **fields}


def causal(name, *sizes, **fields):
    return shape(name, *sizes, mask="causal", **fields)


# The fields are those of `attend bench attention --shapes`.
SHAPES = [
    shape("1024", 1, 12, 1024, 1024, 64),
    causal("1024 causal", 1, 12, 1024, 1024, 64),
    shape("BERT, batch of 8", 8, 12, 128, 128, 64),
    shape("BERT, a fifth padded", 8, 12, 128, 128, 64, mask="lengths=0.8"),
    shape("MiniLM, batch of 32", 32, 12, 32, 32, 32),
    shape("MiniLM, a fifth padded", 32, 12, 32, 32, 32, mask="lengths=0.8"),
    shape("ViT", 4, 12, 197, 197, 64),
    shape("512", 1, 12, 512, 512, 64),
    shape("2048 D128", 1, 8, 2048, 2048, 128),
    causal("2048 D128 causal", 1, 8, 2048, 2048, 128),
    shape("4096", 1, 4, 4096, 4096, 64),
    causal("4096 causal", 1, 4, 4096, 4096, 64),
    causal("16384 causal, one head", 1, 1, 16384, 16384, 64),
    shape("D32", 1, 12, 1024, 1024, 32),
    shape("D80", 1, 12, 1024, 1024, 80),
    shape("D256", 1, 4, 1024, 1024, 256),
    shape("bias", 1, 12, 1024, 1024, 64, modifier="bias"),
    shape("dropout", 1, 12, 1024, 1024, 64, dropout=0.1),
    shape("values of 128", 1, 12, 1024, 1024, 64, vdim=128),
    causal("grouped 32/8 causal", 1, 32, 1024, 1024, 128, kv_heads=8),
    shape("bf16", 1, 12, 1024, 1024, 64, dtype="bf16"),
    shape("f16", 1, 12, 1024, 1024, 64, dtype="f16"),
    shape("one query", 1, 32, 1, 4096, 128, cache=True, only_forward=True),
    shape("one query, grouped 32/8", 1, 32, 1, 4096, 128, kv_heads=8, cache=True, only_forward=True),
    shape("one query, batch of 8", 8, 32, 1, 1024, 128, cache=True, only_forward=True),
    shape("cross", 1, 8, 32, 1500, 64),
    # others
    shape("odd, D48", 2, 6, 333, 333, 48),
    causal("odd, D96 causal", 1, 8, 777, 777, 96),
    shape("SigLIP, D72", 1, 16, 729, 729, 72),
    shape("batch of 16, 64", 16, 8, 64, 64, 64),
    causal("8192 D128 causal, two heads", 1, 2, 8192, 8192, 128),
    causal("one key head, causal", 1, 16, 1024, 1024, 64, kv_heads=1),
    shape("long cross", 1, 8, 128, 4096, 64),
    shape("boolean mask", 1, 12, 1024, 1024, 64, mask="bool=0.75"),
    shape("window of 256, causal", 1, 4, 4096, 4096, 64, mask="causal,window=256"),
    shape("[batch, time, heads, dim]", 1, 12, 1024, 1024, 64, layout="bthd"),
    # Bahdanau's, Luong's
    *(shape(f"additive, {b} x {q} x {k} x {a}", b, 1, q, k, a, vdim=d, score="additive")
      for b, q, k, a, d in [(32, 1, 50, 512, 512), (32, 50, 50, 512, 512), (8, 256, 256, 256, 256),
                            (1, 1024, 1024, 128, 128)]),
    *(shape(f"general, {b} x {q} x {k} x {d}", b, 1, q, k, d, score="general")
      for b, q, k, d in [(32, 50, 50, 512), (8, 256, 256, 256), (1, 1024, 1024, 128)]),
]
REFERENCE_LIMIT = 1e9  # pairs of a boolean mask and the like, which the reference takes seconds for, not minutes


# ---- PyTorch's side ----

def numbers(fields, heads, time_, dim):
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}.get(fields.get("dtype"), torch.float32)
    if fields.get("layout") == "bthd":
        return torch.randn(fields["batch"], time_, heads, dim, dtype=dtype).transpose(1, 2)
    return torch.randn(fields["batch"], heads, time_, dim, dtype=dtype)


def mask_of(fields):
    """What scaled_dot_product_attention is given as attn_mask."""
    b, h, q, k = (fields[x] for x in ("batch", "heads", "tq", "tk"))
    word, _, value = fields.get("mask", "").rpartition(",")[2].partition("=")
    if word == "lengths":
        mask = torch.ones(b, 1, 1, k, dtype=torch.bool)
        mask[..., int(k * float(value)):] = False
        return mask
    if word == "bool":
        return torch.rand(1, 1, q, k) < float(value)
    if word == "window":
        distance = torch.arange(q)[:, None] - torch.arange(k)
        return (distance >= 0) & (distance <= int(value))
    return torch.randn(1, h, q, k) if fields.get("modifier") == "bias" else None


def additive(q, k, v, w):
    return torch.softmax(torch.tanh(q[:, :, None] + k[:, None]) @ w, -1) @ v


def general(q, k, v, w):
    return torch.bmm(torch.softmax(torch.bmm(q @ w, k.transpose(1, 2)), -1), v)


def formula(fields):
    """The function and its operands."""
    heads, kv_heads, dim = fields["heads"], fields.get("kv_heads", fields["heads"]), fields["dim"]
    q = numbers(fields, heads, fields["tq"], dim)
    k = numbers(fields, kv_heads, fields["tk"], dim)
    v = numbers(fields, kv_heads, fields["tk"], fields.get("vdim", dim))
    if fields.get("score") == "additive":
        return additive, [q[:, 0], k[:, 0], v[:, 0], torch.randn(dim)]
    if fields.get("score") == "general":
        return general, [q[:, 0], k[:, 0], v[:, 0], torch.randn(dim, dim) / dim]
    options = {"attn_mask": mask_of(fields), "is_causal": fields.get("mask") == "causal",
               "dropout_p": fields.get("dropout", 0.0), "enable_gqa": kv_heads != heads}
    return lambda q, k, v: scaled_dot_product_attention(q, k, v, **options), [q, k, v]


def torch_ms(fields, backward, seconds):
    f, operands = formula(fields)
    if not backward:
        with torch.no_grad():
            f(*operands)
            return 1e3 * best_time(lambda: f(*operands), seconds)
    operands = [x.detach().requires_grad_(True) for x in operands]
    out = f(*operands)
    gradient = torch.randn_like(out)
    call = lambda: torch.autograd.grad(out, operands, gradient, retain_graph=True)
    call()
    return 1e3 * best_time(call, seconds)


# ---- both ----

class Job:
    """A shape and a pass, and what was found."""

    def __init__(self, fields, backward):
        self.fields = {k: v for k, v in fields.items() if k != "only_forward"}
        self.backward = backward
        f = self.fields
        kv_heads, vdim = f.get("kv_heads", f["heads"]), f.get("vdim", f["dim"])
        self.text = f"B{f['batch']} H{f['heads']}" + (f"/{kv_heads}" if kv_heads != f["heads"] else "")
        self.text += f" {f['tq']}x{f['tk']} D{f['dim']}" + (f"/{vdim}" if vdim != f["dim"] else "")
        self.kv_bytes = 4 * f["batch"] * kv_heads * f["tk"] * (f["dim"] + vdim)
        self.ours = self.theirs = float("inf")
        self.shares = {"": [], "torch_": []}  # of the read bandwidth, of each round
        self.peak = 0.0  # GFLOP/s, over runs as long as attend's
        self.found, self.refused = {}, None

    def measure(self, attend, seconds, verify):
        f, ours = self.fields, float("inf")
        verify = verify and f["batch"] * f["heads"] * f["tq"] * f["tk"] <= REFERENCE_LIMIT
        if not self.refused:
            try:
                self.found = attend.measure(**f, seconds=seconds, no_verify=not verify,
                                            **{"pass": "bwd" if self.backward else "fwd"})
                ours = self.found["ms"]
                self.peak = max(self.peak, self.found["peak_gflops"])
            except Refused as said:
                self.refused = str(said)
        time.sleep(PAUSE)
        theirs = torch_ms(f, self.backward, seconds)
        time.sleep(PAUSE)
        self.ours, self.theirs = min(self.ours, ours), min(self.theirs, theirs)
        if "bandwidth_share" in self.found:
            read = 1e9 * self.found["read_gbytes_per_second"]
            self.shares[""].append(self.found["bandwidth_share"])
            self.shares["torch_"].append(self.kv_bytes / (theirs * 1e-3) / read)

    def object(self, threads):
        f = self.fields
        out = {"name": f["name"], "shape": self.text, "pass": "bwd" if self.backward else "fwd", "threads": threads,
               "torch_ms": round(self.theirs, 4)}
        out.update((k, f[k]) for k in ("mask", "modifier", "score", "dtype", "layout", "dropout", "cache") if k in f)
        if self.refused:
            return {**out, "not_measured": self.refused}
        flops = self.found["gflops"] * self.found["ms"] * 1e6
        share = lambda ms: round(flops / (ms * 1e6) / self.peak, 4)
        out.update({"ms": round(self.ours, 4), "ratio": round(self.theirs / self.ours, 3),
                    "peak_share": share(self.ours), "torch_peak_share": share(self.theirs),
                    "peak_gflops": round(self.peak, 2)})
        out.update((k, self.found[k]) for k in ("isa", "kernel", "skipped", "workspace_bytes"))
        out.update((f"{side}bandwidth_share", round(statistics.median(shares), 4))
                   for side, shares in self.shares.items() if shares)
        return out


HEAD = ["attention", "pass", "shape", "attend ms", "PyTorch ms", "of peak", "PyTorch", "times as fast"]


def row(found):
    start = [found["name"], found["pass"], found["shape"]]
    if "not_measured" in found:
        return start + ["-", f"{found['torch_ms']:.3f}", "-", "-", "-"]
    where = "bandwidth" if "bandwidth_share" in found else "peak"
    shares = [f"{100 * found[side + where + '_share']:.1f} %" + " of bandwidth" * (where != "peak")
              for side in ("", "torch_")]
    return start + [f"{found['ms']:.3f}", f"{found['torch_ms']:.3f}", *shares, f"{found['ratio']:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each side a shape and round")
    parser.add_argument("--only", metavar="REGEX", default="", help="the shapes of which the name has this")
    parser.add_argument("--pass", choices=("fwd", "bwd"), help="one pass; default: both")
    parser.add_argument("--json", action="store_true", help="one object a line")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    jobs = [Job(fields, backward) for fields in SHAPES if re.search(args.only, fields["name"])
            for backward in (False, True) if vars(args)["pass"] in (None, "bwd" if backward else "fwd")
            and not (backward and fields["only_forward"])]
    attend = Attend(args.threads)
    for turn in range(args.rounds):
        for job in jobs:
            job.measure(attend, args.seconds, turn == 0)
    attend.close()
    found = [job.object(args.threads) for job in jobs]
    if args.json:
        for line in found:
            print(json.dumps(line))
        return
    print(f"PyTorch {torch.__version__}, {args.threads} thread{'s' * (args.threads > 1)}, best of {args.rounds} rounds")
    print(table(HEAD, [row(line) for line in found]))
    for line in found:
        if "not_measured" in line:
            print(f"{line['name']}, {line['pass']}: not measured: {line['not_measured']}")
    for side in ("fwd", "bwd"):
        ratios = [line["ratio"] for line in found if line["pass"] == side and "ratio" in line and "score" not in line]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{side}: geometric mean {mean:.2f} over {len(ratios)} shapes, the least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
