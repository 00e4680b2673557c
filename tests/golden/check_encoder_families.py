#!/usr/bin/env python3
"""Compares text encoders with `transformers`: random folders of each family, their hidden states, attention weights and
gradients in float64 with ours. Ours may have eight times the error of transformers' own float32, gradients eight times
the median of five such errors: see gradient_error.

    tests/golden/check_encoder_families.py [--n 25] [--program build/test_encoder_families]

Run with transformers 5.23.0, torch 2.15.0 on a CPU.
"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

import modern_encoders as modern
import torch

from make_encoder_families import FAMILIES, expect, first_position, save, sequences

HEADS = {"Model": 3, "ForMaskedLM": 2, "ForSequenceClassification": 1}  # and how often


def settings_of(family, rng):
    if family in modern.CLASSES:
        return modern.random_settings(family, rng)
    heads = rng.randint(1, 4)
    s = {"hidden_size": heads * rng.choice([4, 5, 8, 16, 24]), "num_attention_heads": heads,
         "num_hidden_layers": rng.randint(1, 4), "intermediate_size": rng.randint(8, 80), "vocab_size": rng.randint(20, 120),
         "hidden_act": rng.choice(["gelu", "gelu_new", "relu", "gelu_pytorch_tanh"]),
         "layer_norm_eps": rng.choice([1e-5, 1e-12]), "type_vocab_size": rng.randint(1, 3) if family == "bert" else 1,
         "pad_token_id": rng.choice([1, 1, 0, 5])}
    longest = rng.choice([10, 33, 70, 150, 300])
    return {**s, "max_position_embeddings": longest + first_position(family, s)}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--n", type=int, default=25)
    options.add_argument("--program", default="build/test_encoder_families")
    options.add_argument("families", nargs="*", default=list(FAMILIES))
    options = options.parse_args()
    print(f"{'family':12} folders  worst error  worst ratio to f32's  of gradients")
    good = True
    for family in options.families:
        with tempfile.TemporaryDirectory() as root:
            for i in range(options.n):
                rng = random.Random(f"{family} {i}")
                folder = pathlib.Path(root, f"{i:02}")
                folder.mkdir()
                settings = settings_of(family, rng)
                save(family, settings, folder, rng.choices(list(HEADS), HEADS.values())[0],
                     rng.choice([torch.float32, torch.float16, torch.bfloat16]), seed=i)
                expect(family, folder, list(sequences(family, settings, rng)), nudges=4)
                if settings.get("older"):
                    modern.make_older(family, folder, settings["pattern"])
            done = subprocess.run([options.program, *map(str, sorted(pathlib.Path(root).iterdir()))], text=True,
                                  stdout=subprocess.PIPE)
            rows = [[float(x) for x in line.split()[1:]] for line in done.stdout.splitlines()]  # folder, error, f32's, ratio of gradients
            good &= done.returncode == 0 and len(rows) == options.n
            print(f"{family:12} {len(rows):7}  {max(r[0] for r in rows):11.3g}  {max(r[0] / r[1] for r in rows):20.2f}  {max(r[2] for r in rows):12.2f}")
    sys.exit(not good)


if __name__ == "__main__":
    main()
