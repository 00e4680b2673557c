#!/usr/bin/env python3
"""A step of learning of a Transformer, 3 + 3 layers: attend and PyTorch, turn and turn about.

128 pairs of texts by chance, sources of 8 to 16 tokens, targets of 16, a vocabulary of 8,000, dropout 0.1, label
smoothing 0.1, Adam, gradients clipped to 1. attend has the texts one after the other, PyTorch pads sources to 16;
target tokens count on both sides. PyTorch runs as torch.nn.Transformer comes, and tuned: with the fused Adam, and with
dropout at the ends of sublayers alone, as attend and Marian have it, which lets it take its fast attention. Each side
runs as a process of its own each round, and counts with its best step; memory is the most that a process of attend ever
holds, and that PyTorch holds beyond its import.
"""
import argparse
import json
import math
import os
import sys
import time

from common import BUILD, PAUSE, run_json, table
from marian import marian_folder

LAYERS, VOCABULARY = 3, 8000
PAIRS, LONGEST = 128, 16
STEPS = 5  # of each round, of which the best counts


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hidden", type=int, action="append", help="256 and 512; may be repeated")
    parser.add_argument("--json", action="store_true", help="one object a size")
    parser.add_argument("--bf16", action="store_true", help="attend with products of bf16 and in f32, PyTorch's autocast")
    parser.add_argument("--side", choices=("plain", "tuned", "autocast"), help="one round of PyTorch")
    return parser.parse_args()


# ---- PyTorch: one process

def peak_mb():
    """Of this process alone: getrusage has that of the one that started it as well, where that was larger."""
    with open("/proc/self/status", encoding="utf-8") as f:
        return next(1.024e-3 * int(line.split()[1]) for line in f if line.startswith("VmHWM:"))


def pytorch(hidden, side):
    import torch
    tuned = side != "plain"
    imported = peak_mb()
    torch.set_num_threads(2)
    torch.manual_seed(0)

    class Translator(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(VOCABULARY, hidden)
            torch.nn.init.normal_(self.table.weight, std=hidden**-0.5)
            self.layers = torch.nn.Transformer(hidden, 8, LAYERS, LAYERS, 4 * hidden, 0.1, batch_first=True)
            turns = torch.arange(LONGEST)[:, None] * 10000 ** (-torch.arange(0, hidden, 2) / hidden)
            self.register_buffer("waves", torch.cat([turns.sin(), turns.cos()], 1))
            for layer in [*self.layers.encoder.layers, *self.layers.decoder.layers] if tuned else []:
                layer.dropout.p = layer.self_attn.dropout = 0.0
                if hasattr(layer, "multihead_attn"):
                    layer.multihead_attn.dropout = 0.0

        def forward(self, x, y):
            n, padding = y.shape[1], x == 0
            source, target = (self.table(ids) * math.sqrt(hidden) + self.waves[:ids.shape[1]] for ids in (x, y))
            later = torch.nn.Transformer.generate_square_subsequent_mask(n)
            states = self.layers(source, target, tgt_mask=later, tgt_is_causal=True,
                                 src_key_padding_mask=padding, memory_key_padding_mask=padding)
            return states @ self.table.weight.T

    model = Translator()
    adam = torch.optim.Adam(model.parameters(), 1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True if tuned else None)
    x = torch.randint(1, VOCABULARY, (PAIRS, LONGEST))
    y = torch.randint(1, VOCABULARY, (PAIRS, LONGEST + 1))
    for i in range(PAIRS):
        x[i, 8 + i % 9:] = 0

    def step():
        adam.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=side == "autocast"):
            logits = model(x, y[:, :-1])
        logits = logits.float()
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y[:, 1:].flatten(), label_smoothing=0.1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()

    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return {"params": sum(p.numel() for p in model.parameters()), "ms": 1e3 * min(times),
            "tokens_per_second": PAIRS * LONGEST / min(times), "peak_mb": peak_mb() - imported,
            "version": torch.__version__}


# ---- all sides

def measure(hidden, rounds, bf16):
    own = [sys.executable, os.path.abspath(__file__), "--hidden", hidden, "--side"]
    attend = [BUILD / "bench/bench_train", marian_folder(LAYERS, hidden, VOCABULARY), STEPS, "--json"]
    sides = {"attend": attend, "PyTorch": [*own, "plain"], "PyTorch, tuned": [*own, "tuned"]}
    if bf16:
        sides = {"attend bf16": [*attend, "--bf16"], "attend": attend, "PyTorch autocast": [*own, "autocast"]}
    best, all_rounds = {}, {name: [] for name in sides}
    for _ in range(rounds):
        for name, command in sides.items():
            time.sleep(PAUSE)
            [found] = run_json(*command)
            all_rounds[name].append(found["tokens_per_second"])
            before = best.get(name, found)
            best[name] = {**found, "ms": min(found["ms"], before["ms"]),
                          "tokens_per_second": max(found["tokens_per_second"], before["tokens_per_second"]),
                          "peak_mb": min(found["peak_mb"], before["peak_mb"])}
    for name, side in best.items():
        side["rounds"] = all_rounds[name]
    return best


def main():
    args = parse()
    sizes = args.hidden or [256, 512]
    if args.side:
        print(json.dumps(pytorch(sizes[0], args.side)))
        return
    for hidden in sizes:
        sides = measure(hidden, args.rounds, args.bf16)
        ours = sides["attend bf16" if args.bf16 else "attend"]
        if args.json:
            print(json.dumps({"hidden": hidden, "rounds": args.rounds, "sides": sides}), flush=True)
            continue
        print(f"{LAYERS} + {LAYERS} layers, d {hidden}, 2 threads, best of {args.rounds} rounds; torch "
              f"{list(sides.values())[-1]['version']}")
        print(table(["", "parameters", "ms a step", "tokens/s", "attend is", "peak, MB", "attend holds"], [
            [name, f"{s['params']:,}", f"{s['ms']:.0f}", f"{s['tokens_per_second']:.0f}",
             f"{s['ms'] / ours['ms']:.2f} x", f"{s['peak_mb']:.0f}", f"{ours['peak_mb'] / s['peak_mb']:.2f} x"]
            for name, s in sides.items()]))


if __name__ == "__main__":
    main()
