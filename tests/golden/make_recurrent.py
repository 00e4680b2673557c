#!/usr/bin/env python3
"""Writes recurrent.txt: PyTorch's nn.GRU and nn.LSTM, two layers, bidirectional, on sequences of different lengths, in
float64: outputs, last states and all gradients. A line is a name and its numbers.

    python3 make_recurrent.py

Made with torch 2.15.0 on a CPU. Inputs are those of check_numbers in tests/fixtures/check.h: x and states with the seeds 1 to 3,
gradients 4 to 6, parameters 10 and on in PyTorch's order.
"""
import pathlib

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from check_numbers import numbers

IN, UNITS, LAYERS, LENGTHS = 2, 3, 2, [3, 5, 1, 3]
lines = []


def store(name, values):
    lines.append(f"{name} {' '.join(f'{float(v):.9g}' for v in values.detach().flatten())}\n")


def ragged(padded):
    """[sequences, time, features] without padding"""
    return torch.cat([padded[i, :n] for i, n in enumerate(LENGTHS)])


def make(name, kind, n_states):
    net = kind(IN, UNITS, LAYERS, bidirectional=True, batch_first=True, dtype=torch.float64)
    for i, p in enumerate(net.parameters()):
        p.data = numbers(10 + i, *p.shape)
    x = numbers(1, sum(LENGTHS), IN).requires_grad_()
    start = [numbers(2 + i, 2 * LAYERS, len(LENGTHS), UNITS).requires_grad_() for i in range(n_states)]
    padded = torch.nn.utils.rnn.pad_sequence(x.split(LENGTHS), batch_first=True)
    packed = pack_padded_sequence(padded, LENGTHS, batch_first=True, enforce_sorted=False)
    y, last = net(packed, tuple(start) if n_states == 2 else start[0])
    y, last = ragged(pad_packed_sequence(y, batch_first=True)[0]), last if n_states == 2 else (last,)
    loss = (y * numbers(4, *y.shape)).sum() + sum((s * numbers(5 + i, *s.shape)).sum() for i, s in enumerate(last))
    loss.backward()
    store(f"{name}_y", y)
    store(f"{name}_dx", x.grad)
    for i in range(n_states):
        store(f"{name}_last_{i}", last[i])
        store(f"{name}_dstart_{i}", start[i].grad)
    for i, p in enumerate(net.parameters()):
        store(f"{name}_dparam_{i}", p.grad)


make("gru", torch.nn.GRU, 1)
make("lstm", torch.nn.LSTM, 2)
pathlib.Path(__file__).with_name("recurrent.txt").write_text("".join(lines))
