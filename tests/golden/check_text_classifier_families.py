#!/usr/bin/env python3
"""Compares text classifiers with `transformers` and sentence-transformers' CrossEncoder: random folders of each family,
their ids of texts and of truncated pairs, their logits and scores in float64 with ours. Ours may have eight times the
error of transformers' own float32.

    tests/golden/check_text_classifier_families.py [--n 25] [--program build/test_text_classifier_families]

Run with sentence-transformers 6.2.0, transformers 5.23.0, torch 2.15.0 on a CPU.
"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

import torch

import modern_encoders as modern
from make_encoder_families import first_position
from make_text_classifier_families import LABELS, TOKENIZERS, bert, expect, save, texts


def settings_of(family, tokens, longest, rng):
    if family in modern.CLASSES:
        s = modern.random_settings(family, rng)
        if family == "modernbert":
            s["more"] |= {"classifier_pooling": rng.choice(["cls", "mean"]), "classifier_bias": rng.random() < 0.5,
                          "classifier_activation": rng.choice(["gelu", "relu", "gelu_new"])}
        return {**s, "vocab_size": tokens, "max_position_embeddings": longest, "type_vocab_size": 2, "pad_token_id": 1}
    heads = rng.randint(1, 4)
    s = {"hidden_size": heads * rng.choice([4, 5, 8, 16, 24]), "num_attention_heads": heads,
         "num_hidden_layers": rng.randint(1, 4), "intermediate_size": rng.randint(8, 80), "vocab_size": tokens,
         "hidden_act": rng.choice(["gelu", "gelu_new", "relu"]), "layer_norm_eps": rng.choice([1e-5, 1e-12]),
         "type_vocab_size": rng.randint(2, 3) if family == "bert" else 1, "pad_token_id": 1}
    return {**s, "max_position_embeddings": longest + first_position(family, s)}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--n", type=int, default=25)
    options.add_argument("--program", default="build/test_text_classifier_families")
    options.add_argument("families", nargs="*", default=list(TOKENIZERS))
    options = options.parse_args()
    print(f"{'family':12} folders  worst error  worst ratio to f32's")
    good = True
    for family in options.families:
        with tempfile.TemporaryDirectory() as root:
            for i in range(options.n):
                rng = random.Random(f"{family} {i}")
                folder, longest = pathlib.Path(root, f"{i:02}"), rng.choice([8, 13, 33, 70, 150])
                folder.mkdir()
                make = bert if family == "bert" and i % 2 else TOKENIZERS[family]
                settings = settings_of(family, make(folder, longest) + rng.randrange(3), longest, rng)
                save(family, settings, rng.choice(list(LABELS)), folder,
                     rng.choice(["plain", "older", "newer", "modules"]),
                     rng.choice([torch.float32, torch.float16, torch.bfloat16]), seed=i)
                expect(family, folder, texts(rng, 20, longest))
            done = subprocess.run([options.program, *map(str, sorted(pathlib.Path(root).iterdir()))], text=True,
                                  stdout=subprocess.PIPE)
            rows = [[float(x) for x in line.split()[1:]] for line in done.stdout.splitlines()]  # folder error f32
            good &= done.returncode == 0 and len(rows) == options.n
            print(f"{family:12} {len(rows):7}  {max(r[0] for r in rows):11.3g}  {max(r[0] / r[1] for r in rows):.2f}",
                  flush=True)
    sys.exit(not good)


if __name__ == "__main__":
    main()
