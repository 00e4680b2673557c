#!/usr/bin/env python3
"""Writes nn.txt: layers of PyTorch and one of transformers, on sequences of different lengths, in float64: results and
all gradients of the sum of results times numbers. A line is CASE.NAME and its numbers.

    python3 make_nn.py

Made with torch 2.15.0 and transformers 5.23.0 on a CPU. tests/core/nn.c makes the same numbers: x with seed 1, the source
with 2, the results' gradient with 3, a parameter by its name.
"""
import pathlib

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from transformers.models.qwen3.modeling_qwen3 import Qwen3Config, Qwen3DecoderLayer, Qwen3RotaryEmbedding

from check_numbers import numbers

WIDTH, HEADS, INNER, LENGTHS, SOURCES = 8, 2, 12, [4, 1, 3], [2, 3, 1]
lines = []


def store(name, values):
    lines.append(f"{name} {' '.join(f'{float(v):.9g}' for v in values.detach().flatten())}\n")


@torch.no_grad()
def fill(module):
    """Weights that follow from their names; those of norms are near 1."""
    for name, p in module.named_parameters():
        x = numbers(sum(ord(c) * (i + 1) for i, c in enumerate(name)), *p.shape)
        p.copy_(1 + x / 8 if "norm" in name and name.endswith("weight") else x / 2)


def padded(x, lengths):
    """[tokens, features] -> [sequences, time, features], and where padding is"""
    mask = pad_sequence([torch.zeros(n, dtype=torch.bool) for n in lengths], True, True)
    return pad_sequence(x.split(lengths), True), mask


def ragged(x):
    return torch.cat([x[i, :n] for i, n in enumerate(LENGTHS)])


def causal():
    return torch.ones(max(LENGTHS), max(LENGTHS), dtype=torch.bool).triu(1)


def case(name, module, apply, **inputs):
    fill(module)
    y = apply(*inputs.values())
    (y * numbers(3, *y.shape)).sum().backward()
    store(f"{name}.y", y)
    for k, x in inputs.items():
        store(f"{name}.{k}", x.grad)
    for k, p in module.named_parameters():
        store(f"{name}.{k}", p.grad)


def x():
    return numbers(1, sum(LENGTHS), WIDTH).requires_grad_()


def source():
    return numbers(2, sum(SOURCES), WIDTH).requires_grad_()


def attention():
    mha = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, dtype=torch.float64)

    def apply(x):
        p, mask = padded(x, LENGTHS)
        return ragged(mha(p, p, p, key_padding_mask=mask, attn_mask=causal(), need_weights=False)[0])
    case("attention", mha, apply, x=x())


def cross():
    mha = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, dtype=torch.float64)

    def apply(x, source):
        q, (k, mask) = padded(x, LENGTHS)[0], padded(source, SOURCES)
        return ragged(mha(q, k, k, key_padding_mask=mask, need_weights=False)[0])
    case("cross", mha, apply, x=x(), source=source())


OPTIONS = dict(d_model=WIDTH, nhead=HEADS, dim_feedforward=INNER, dropout=0.0, batch_first=True, dtype=torch.float64)


def encoder(name, **options):
    layer = nn.TransformerEncoderLayer(**OPTIONS, **options)

    def apply(x):
        p, mask = padded(x, LENGTHS)
        return ragged(layer(p, src_key_padding_mask=mask))
    case(name, layer, apply, x=x())


def decoder(name, **options):
    layer = nn.TransformerDecoderLayer(**OPTIONS, **options)

    def apply(x, source):
        (p, mask), (s, source_mask) = padded(x, LENGTHS), padded(source, SOURCES)
        return ragged(layer(p, s, tgt_mask=causal(), tgt_key_padding_mask=mask, memory_key_padding_mask=source_mask))
    case(name, layer, apply, x=x(), source=source())


class SASRecLayer(nn.Module):
    """Kang, McAuley 2018, as in the authors' and in PyTorch's common version: Q normalized, K = V = x."""
    def __init__(self):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, dtype=torch.float64)
        self.linear1 = nn.Linear(WIDTH, INNER, dtype=torch.float64)
        self.linear2 = nn.Linear(INNER, WIDTH, dtype=torch.float64)
        self.norm1 = nn.LayerNorm(WIDTH, dtype=torch.float64)
        self.norm2 = nn.LayerNorm(WIDTH, dtype=torch.float64)

    def forward(self, x):
        p, mask = padded(x, LENGTHS)
        q = self.norm1(p)
        y = q + self.self_attn(q, p, p, key_padding_mask=mask, attn_mask=causal(), need_weights=False)[0]
        y = self.norm2(y)
        return ragged(y + self.linear2(torch.relu(self.linear1(y))))


class LayerScaleLayer(nn.Module):
    """Pre-norm with layer scale (Touvron et al. 2021)."""
    def __init__(self):
        super().__init__()
        self.layer = SASRecLayer()
        self.scale1 = nn.Parameter(torch.zeros(WIDTH, dtype=torch.float64))
        self.scale2 = nn.Parameter(torch.zeros(WIDTH, dtype=torch.float64))

    def forward(self, x):
        p, mask = padded(x, LENGTHS)
        q = self.layer.norm1(p)
        y = p + self.scale1 * self.layer.self_attn(q, q, q, key_padding_mask=mask, need_weights=False)[0]
        h = torch.relu(self.layer.linear1(self.layer.norm2(y)))
        return ragged(y + self.scale2 * self.layer.linear2(h))


def qwen3():
    """Grouped heads of 4, two of them wider than x; RMS norms, of each head's queries and keys, too; rotary, SwiGLU."""
    config = Qwen3Config(hidden_size=WIDTH, intermediate_size=INNER, num_attention_heads=4, num_key_value_heads=2,
                         head_dim=4, rms_norm_eps=1e-6, attention_bias=False, num_hidden_layers=1,
                         attn_implementation="eager")
    layer, rotary = Qwen3DecoderLayer(config, 0).double(), Qwen3RotaryEmbedding(config).double()

    def apply(x):
        rows = []
        for s in x.split(LENGTHS):
            n = len(s)
            mask = torch.full((1, 1, n, n), float("-inf"), dtype=torch.float64).triu(1)
            at = rotary(s[None], torch.arange(n)[None])
            y = layer(s[None], attention_mask=mask, position_embeddings=at)
            rows.append((y[0] if isinstance(y, tuple) else y)[0])
        return torch.cat(rows)
    case("qwen3", layer, apply, x=x())


attention()
cross()
encoder("encoder_post")
encoder("encoder_pre", norm_first=True, activation="gelu")
decoder("decoder_post")
decoder("decoder_pre", norm_first=True, activation="gelu")
for name_, module_ in (("sasrec", SASRecLayer()), ("layer_scale", LayerScaleLayer())):
    case(name_, module_, module_, x=x())
qwen3()
pathlib.Path(__file__).with_name("nn.txt").write_text("".join(lines))
