#!/usr/bin/env python3
"""Writes tiny_gpt2.txt, as tiny_language.py describes: tiny models of GPT-2, whose weights follow from a formula, by
transformers in float64.

    python3 make_tiny_gpt2.py

Made with transformers 5.23.0, torch 2.15.0 on a CPU. tests/fixtures/tiny_gpt2.h makes the same weights.
"""
import pathlib

from transformers import GPT2Config, GPT2LMHeadModel

from tiny_language import lines, set_weights

BASE = dict(vocab_size=20, n_embd=16, n_layer=2, n_head=4, n_positions=64, attn_implementation="eager", dtype="float64")
MODELS = {
    "tied": {},
    "untied": dict(n_inner=24, layer_norm_epsilon=1e-3, tie_word_embeddings=False),
}


def main():
    out = []
    for name, more in MODELS.items():
        model = GPT2LMHeadModel(GPT2Config(**{**BASE, **more})).double().eval()
        set_weights(model, "transformer.")
        out += lines(name, model)
    (pathlib.Path(__file__).parent / "tiny_gpt2.txt").write_text("\n".join(out) + "\n")


main()
