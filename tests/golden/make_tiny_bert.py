#!/usr/bin/env python3
"""Writes hidden states of a tiny BERT whose weights follow from a formula, by transformers, a line of 12 numbers a token.

tiny_bert.txt, in fp32: one block a setting: its hidden_act, then the tokens of each sequence.
tiny_bert_pair.txt, in float64: the tokens of sequences with token types and positions; then the gradients of the sum of
all squares: of the two token types and of the 16 positions.

    python3 make_tiny_bert.py

Made with transformers 5.23.0, torch 2.15.0 on a CPU. tests/fixtures/tiny_bert.h makes the same weights.
"""
import pathlib

import torch
from transformers import BertConfig, BertModel

from tiny_weights import numbers

SEQUENCES = [[2, 7, 9, 11, 3], [2, 3], [2, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 3]]


# ids, token types, positions; the first is what the tokenizer makes of the pair "a b", "c d e"
PAIRS = [([2, 5, 6, 3, 7, 8, 9, 3], [0, 0, 0, 0, 1, 1, 1, 1], list(range(8))), ([2, 7, 9, 11, 3], [0, 1, 1, 0, 1], [7, 0, 3, 3, 15])]


def tiny(act):
    config = BertConfig(vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
                        intermediate_size=20, hidden_act=act, max_position_embeddings=16, type_vocab_size=2,
                        layer_norm_eps=1e-5)
    model = BertModel(config, add_pooling_layer=False).eval()
    model.load_state_dict({k: numbers(k, v.shape) if v.is_floating_point() else v for k, v in model.state_dict().items()})
    return model


def write(name, lines):
    (pathlib.Path(__file__).parent / name).write_text("\n".join(lines) + "\n")


def show(rows):
    return [" ".join(f"{float(x):.9g}" for x in row) for row in rows.detach()]


def main():
    lines = []
    for act in ("gelu", "gelu_new", "relu"):
        model = tiny(act)
        lines.append(act)
        for ids in SEQUENCES:
            with torch.no_grad():
                lines += show(model(torch.tensor([ids])).last_hidden_state[0])
    write("tiny_bert.txt", lines)

    model = tiny("gelu").double()
    lines = []
    for ids, types, positions in PAIRS:
        y = model(torch.tensor([ids]), token_type_ids=torch.tensor([types]),
                  position_ids=torch.tensor([positions])).last_hidden_state[0]
        (y * y).sum().backward()
        lines += show(y)
    tables = model.embeddings
    write("tiny_bert_pair.txt",
          lines + show(tables.token_type_embeddings.weight.grad) + show(tables.position_embeddings.weight.grad))


if __name__ == "__main__":
    main()
