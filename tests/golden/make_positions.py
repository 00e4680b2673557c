#!/usr/bin/env python3
"""Writes positions.txt: sinusoidal positions of transformers' Marian, and of the paper by its formula in float64; a
tensor turned by the rotary positions of transformers' Llama (halves; also with YaRN's frequencies and factor) and GPT-J
(neighbors). A line is a name and its numbers.

    python3 make_positions.py

Made with transformers 5.23.0, torch 2.15.0 on a CPU. Inputs are those of check_numbers in tests/fixtures/check.h.
"""
import pathlib

import numpy
import torch
from transformers.models.gptj import modeling_gptj
from transformers.models.llama import LlamaConfig, modeling_llama
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from check_numbers import numbers

HEADS, DIM = 2, 12
lines = []


def store(name, values):
    lines.append(f"{name} {' '.join(f'{float(v):.9g}' for v in numpy.asarray(values).ravel())}\n")


for features in 10, 7:
    marian = MarianSinusoidalPositionalEmbedding(1024, features)
    store(f"marian_{features}", marian.create_weight()[[0, 1, 2, 7, 100, 1023]])
    paper = numpy.array([[(numpy.sin, numpy.cos)[j % 2](p / 10000 ** (2 * (j // 2) / features))
                          for j in range(features)] for p in (0, 1, 2, 7, 100, 1000000)])
    store(f"paper_{features}", paper)

positions = torch.tensor([[0, 1, 2, 3, 57, 400]])
x = numbers(1, 1, positions.shape[1], HEADS, DIM, dtype=torch.float32)
config = LlamaConfig(hidden_size=HEADS * DIM, num_attention_heads=HEADS, max_position_embeddings=1024)
yarn = LlamaConfig(hidden_size=HEADS * DIM, num_attention_heads=HEADS, max_position_embeddings=1024,
                   rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                                    "original_max_position_embeddings": 256})
for name, config in ("llama", config), ("yarn", yarn):
    embedding = modeling_llama.LlamaRotaryEmbedding(config)
    cosine, sine = embedding(x, positions)
    turned, _ = modeling_llama.apply_rotary_pos_emb(x.transpose(1, 2), x.transpose(1, 2), cosine, sine)
    store(name, turned.transpose(1, 2))
    if config is yarn:
        store("yarn_frequencies", embedding.inv_freq)
        store("yarn_factor", [embedding.attention_scaling])
table = modeling_gptj.create_sinusoidal_positions(1024, DIM)[positions]
sine, cosine = torch.split(table, DIM // 2, dim=-1)
store("gptj", modeling_gptj.apply_rotary_pos_emb(x, sine, cosine))
pathlib.Path(__file__).with_name("positions.txt").write_text("".join(lines))
