#!/usr/bin/env python3
"""Training steps of a captioner with PyTorch and with attend (bench/captions.c) in turn, for bench/accept/d: the network
of convolutions of `attend train caption`, a GRU with gated additive attention, 2,539 words; images of 96 x 96 with five
captions each; AdamW, gradients clipped.

Both begin with the weights that attend writes. Before anything is timed, the losses of three steps have to be the same.
Prints captions a second as JSON. What PyTorch does is what makes it fast: captions are sorted by length, and those that
have ended are not computed on; keys of the attention are computed once for an image; of both layouts of images,
channels first and channels last, the faster one counts.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

import torch
from safetensors.torch import load_file
from torch.nn import functional as F

from common import BUILD, best_time, run_json

ALLOWED = 2e-5  # difference of losses, of the loss
SIDE, CHANNELS, WORDS, END, PER_IMAGE, SHORTEST, LENGTHS = 96, 3, 2537, 2538, 5, 8, 9  # as in bench/captions.c
CHECKED = 3  # steps


def data(images):
    """Pixels [images, channels, side, side], words of captions with END, the image of each: the numbers of
    bench/captions.c"""
    k = torch.arange(images * SIDE * SIDE * CHANNELS)
    pixels = ((k * 7919 % 10007 * 37 % 256).float() / 255 - 0.5).view(images, SIDE, SIDE, CHANNELS).permute(0, 3, 1, 2)
    captions, n = [], 0
    for c in range(images * PER_IMAGE):
        at = n + torch.arange(SHORTEST + c * 7 % LENGTHS)
        captions.append(torch.cat([at * at % 1009 * 31 % WORDS, torch.tensor([END])]))
        n = int(at[-1]) + 2
    return pixels, captions


class Batch:
    """Captions sorted by length, the longest first: at step t the first sizes[t] of them have a word."""

    def __init__(self, images, layout):
        pixels, captions = data(images)
        self.pixels = pixels.contiguous(memory_format=layout)
        order = sorted(range(len(captions)), key=lambda c: -len(captions[c]))
        self.image = torch.tensor([c // PER_IMAGE for c in order])
        packed = torch.nn.utils.rnn.pack_sequence([captions[c] for c in order])
        before = [torch.cat([torch.tensor([END]), captions[c][:-1]]) for c in order]
        self.sizes, self.targets = packed.batch_sizes.tolist(), packed.data
        self.before = torch.nn.utils.rnn.pack_sequence(before).data


class Captioner(torch.nn.Module):
    def __init__(self, path, layout):
        super().__init__()
        weights = load_file(path)
        self.p = torch.nn.ParameterDict({
            name.replace(".", "_"): torch.nn.Parameter(w.contiguous(memory_format=layout) if w.ndim == 4 else w)
            for name, w in weights.items() if ".running_" not in name})

    def encode(self, x):
        p = self.p
        for s in range(4):
            for k in range(2):
                y = F.conv2d(x, p[f"encoder_{s}_conv{k}_weight"], padding=1)
                y = F.relu(F.batch_norm(y, None, None, p[f"encoder_{s}_norm{k}_weight"],
                                        p[f"encoder_{s}_norm{k}_bias"], training=True))
                x = x + y if k else F.max_pool2d(y, 2)
        return x.flatten(2).transpose(1, 2)  # [images, locations, features]

    def linear(self, name, x):
        return F.linear(x, self.p[f"{name}_weight"], self.p[f"{name}_bias"])

    def forward(self, batch):
        p = self.p
        h = torch.tanh(self.linear("project", self.encode(batch.pixels)))
        keys = F.linear(h, p["attention_key_weight"])[batch.image]
        state = torch.tanh(self.linear("bridge_0", h.mean(1)))[batch.image]
        h = h[batch.image]
        words = F.embedding(batch.before, p["target_weight"]) * p["target_weight"].shape[1] ** 0.5
        read, at = [], 0
        for n in batch.sizes:
            state, keys, h = state[:n], keys[:n], h[:n]
            query = F.linear(state, p["attention_query_weight"])
            scores = torch.tanh(query[:, None] + keys) @ p["attention_score"][0]
            context = (torch.softmax(scores, 1)[:, None] @ h)[:, 0] * torch.sigmoid(self.linear("attention_gate", state))
            state = torch.gru_cell(torch.cat([words[at:at + n], context], 1), state, p["decoder_weight_ih_l0"],
                                   p["decoder_weight_hh_l0"], p["decoder_bias_ih_l0"], p["decoder_bias_hh_l0"])
            read.append(torch.cat([context, state], 1))
            at += n
        y = torch.tanh(self.linear("readout", torch.cat(read)))
        return F.cross_entropy(F.linear(y, p["target_weight"], p["output_bias"]), batch.targets)


def training(path, images, layout):
    """A function that takes a step and returns the loss before it"""
    model, batch = Captioner(path, layout), Batch(images, layout)
    groups = {0.01: [], 0.0: []}  # weight decay of matrices, but not of embeddings
    for name, p in model.p.items():
        groups[0.0 if p.ndim < 2 or name.startswith("target_") else 0.01].append(p)
    optimizer = torch.optim.AdamW([{"params": p, "weight_decay": decay} for decay, p in groups.items()], 1e-3, fused=True)

    def step():
        loss = model(batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        return loss.item()

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=32, help="of a step")
    args = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    found, difference = {"PyTorch": 0.0, "attend": 0.0}, 0.0
    with tempfile.TemporaryDirectory() as folder:
        ours = [BUILD / "bench" / "bench_captions", folder, args.images, CHECKED]
        [line] = run_json(*ours)
        path, captions = pathlib.Path(folder) / "model.safetensors", args.images * PER_IMAGE
        steps = [training(path, args.images, layout) for layout in (torch.contiguous_format, torch.channels_last)]
        for step in steps:
            losses = [step() for _ in range(CHECKED)]
            difference = max(difference, *(abs(a - b) / b for a, b in zip(line["losses"], losses)))
            if not difference <= ALLOWED:
                sys.exit(f"captions.py: not the same computation: attend's losses are {line['losses']}, PyTorch's {losses}")
        for _ in range(args.rounds):
            for step in steps:
                found["PyTorch"] = max(found["PyTorch"], captions / best_time(step, 0, 3))
            found["attend"] = max(found["attend"], run_json(*ours)[0]["captions_per_second"])
    print(json.dumps({"images": args.images, "captions": captions, "words": line["words"],
                      "threads": torch.get_num_threads(), "difference": difference, "captions_per_second": found}))


if __name__ == "__main__":
    main()
