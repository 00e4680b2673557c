#!/usr/bin/env python3
"""Writes seq2seq.txt: the encoder-decoders of src/translate/seq2seq.c, made of PyTorch's parts in float64, sentence by
sentence: logits, attention weights of each target token, and the losses of 20 steps of AdamW. A line is a name and its
numbers.

    python3 make_seq2seq.py

Made with torch 2.15.0 on a CPU. Parameter i, in the order in which the model asks for them, has the numbers of
check_numbers in tests/fixtures/check.h with the seed 100 + i, halved.
"""
import pathlib

import torch
from torch import nn

from check_numbers import numbers

SOURCE_WORDS, WORDS, EMBEDDING, UNITS = 11, 9, 4, 6
START = PAD = WORDS - 1
SOURCES, TARGETS = [5, 2, 3], [4, 2, 5]
lines = []


def store(name, values):
    lines.append(f"{name} {' '.join(f'{float(v):.9g}' for v in values)}\n")


def ids(lengths, factor, shift, words):
    all_ids = torch.arange(sum(lengths)) * factor + shift
    return (all_ids % words).split(lengths)


class Seq2Seq(nn.Module):
    def __init__(self, lstm, attention, layers, bidirectional):
        super().__init__()
        self.weights = []
        self.lstm, self.attention, self.layers, self.ways = lstm, attention, layers, 2 if bidirectional else 1
        rnn = nn.LSTM if lstm else nn.GRU
        first = attention in ("none", "additive")
        self.source = nn.Embedding(SOURCE_WORDS, EMBEDDING)
        self.encoder = rnn(EMBEDDING, UNITS // self.ways, layers, bidirectional=bidirectional)
        self.bridge = nn.ModuleList(nn.Linear(UNITS, UNITS) for _ in range(layers))
        self.target = nn.Embedding(WORDS, EMBEDDING)
        self.decoder = rnn(EMBEDDING + (UNITS if first else 0), UNITS, layers)
        if attention == "additive":
            self.w, self.u = nn.Linear(UNITS, UNITS, bias=False), nn.Linear(UNITS, UNITS, bias=False)
            self.v = nn.Parameter(torch.empty(1, UNITS))
        if attention == "general":
            self.w_a = nn.Parameter(torch.empty(1, UNITS, UNITS))
        self.readout = nn.Linear(2 * UNITS, UNITS)
        self.output = nn.Linear(UNITS, WORDS)
        self.double()
        order = [self.source, self.encoder, *self.bridge, self.target, self.decoder]
        if attention == "additive":
            order += [self.w, self.u, [self.v]]
        if attention == "general":
            order += [[self.w_a]]
        order += [self.readout, self.output]
        params = [p for part in order for p in (part if isinstance(part, list) else part.parameters())]
        for i, p in enumerate(params):
            p.data = numbers(100 + i, *p.shape) / 2

    def join(self, states):
        """[layers * ways, units] -> of each layer, directions side by side"""
        return states.reshape(self.layers, UNITS)

    def context(self, s, h):
        """s [units], h [tokens, units]"""
        score = {"additive": lambda: torch.tanh(self.w(s) + self.u(h)) @ self.v[0],
                 "dot": lambda: h @ s,
                 "general": lambda: h @ (s @ self.w_a[0])}[self.attention]()
        self.weights.append(torch.softmax(score, 0))
        return self.weights[-1] @ h

    def forward(self, source, before):
        h, last = self.encoder(self.source(source))
        hidden = self.join(last[0] if self.lstm else last)
        fixed = hidden[-1]
        state = torch.stack([torch.tanh(bridge(x)) for bridge, x in zip(self.bridge, hidden)])
        if self.lstm:
            state = (state, self.join(last[1]))
        logits = []
        for word in before:
            y, s = self.target(word), (state[0] if self.lstm else state)[-1]
            if self.attention == "none":
                c = fixed
            elif self.attention == "additive":
                c = self.context(s, h)
            x = torch.cat([y, c]) if self.attention in ("none", "additive") else y
            out, state = self.decoder(x[None], state)
            if self.attention in ("dot", "general"):
                c = self.context(out[0], h)
            logits.append(self.output(torch.tanh(self.readout(torch.cat([c, out[0]])))))
        return torch.stack(logits)


sources, targets = ids(SOURCES, 7, 3, SOURCE_WORDS), ids(TARGETS, 5, 2, PAD)


def all_logits(model):
    start = torch.tensor([START])
    return torch.cat([model(s, torch.cat([start, t[:-1]])) for s, t in zip(sources, targets)])


cases = [(False, "none", 1, False), (False, "additive", 1, True), (False, "general", 2, False),
         (True, "none", 2, True), (True, "additive", 2, True), (True, "dot", 1, True)]
for i, case in enumerate(cases):
    model = Seq2Seq(*case)
    store(f"logits_{i}", all_logits(model).detach().flatten())
    if model.weights:
        store(f"weights_{i}", torch.cat(model.weights).detach())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01)
    losses = []
    for step in range(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(all_logits(model)[:, :PAD], torch.cat(targets), label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    store(f"losses_{i}", losses)
pathlib.Path(__file__).with_name("seq2seq.txt").write_text("".join(lines))
