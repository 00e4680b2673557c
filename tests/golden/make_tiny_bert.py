#!/usr/bin/env python3
"""Writes tiny_bert.txt: hidden states of a tiny BERT whose weights follow from a formula, by transformers in fp32.
One block a setting: its hidden_act, then a line of 12 numbers for each token of each sequence.

    python3 make_tiny_bert.py

Made with transformers 5.23.0, torch 2.15.0 on a CPU. tests/fixtures/tiny_bert.h makes the same weights.
"""
import pathlib

import torch
from transformers import BertConfig, BertModel

from tiny_weights import numbers

SEQUENCES = [[2, 7, 9, 11, 3], [2, 3], [2, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 3]]


def main():
    lines = []
    for act in ("gelu", "gelu_new", "relu"):
        config = BertConfig(vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
                            intermediate_size=20, hidden_act=act, max_position_embeddings=16, type_vocab_size=2,
                            layer_norm_eps=1e-5)
        model = BertModel(config, add_pooling_layer=False).eval()
        model.load_state_dict({k: numbers(k, v.shape) if v.is_floating_point() else v
                               for k, v in model.state_dict().items()})
        lines.append(act)
        for ids in SEQUENCES:
            with torch.no_grad():
                y = model(torch.tensor([ids])).last_hidden_state[0]
            lines += [" ".join(f"{float(x):.9g}" for x in row) for row in y]
    (pathlib.Path(__file__).parent / "tiny_bert.txt").write_text("\n".join(lines) + "\n")


main()
