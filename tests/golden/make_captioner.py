#!/usr/bin/env python3
"""Writes captioner.txt: the captioners of src/caption/captioner.c in PyTorch's functions and float64, caption by caption:
logits of word prediction, logits of captions, the attention of each word, and the losses of 12 steps of AdamW, in
which the grids learn, too. A line is a name and its numbers.

    python3 make_captioner.py

Made with torch 2.15.0 on a CPU. Parameter i, in the order in which the model asks for them, has the numbers of
check_numbers in tests/fixtures/check.h with the seed 100 + i, halved; running statistics are among them, and stay as they are.
"""
import pathlib

import torch
from torch.nn import functional as F

from check_numbers import numbers

IMAGES, SIDE, CHANNELS, STAGES, HIDDEN, EMBEDDING = 2, 8, 3, [4, 6], 6, 4
WORDS, UNKNOWN, END, PRESENCE = 9, 7, 8, 3
CAPTIONS, OF_IMAGE = [4, 2, 5], [0, 0, 1]  # words of each, with END; the image of each
STEPS, SMOOTHING, SPREAD = 12, 0.1, 0.5
lines = []


def store(name, values):
    lines.append(f"{name} {' '.join(f'{float(v):.9g}' for v in values)}\n")


def captions():
    ids, n = [], 0
    for length in CAPTIONS:
        ids.append(torch.tensor([(5 * (n + i) + 2) % END for i in range(length - 1)] + [END]))
        n += length - 1
    return ids


class Captioner:
    def __init__(self, kind):
        self.kind, self.p, i = kind, {}, 0

        def ask(name, *shape, running=False):
            nonlocal i
            if not running:
                self.p[name] = (numbers(100 + i, *shape) / 2).requires_grad_()
            i += 1

        def linear(name, rows, columns, bias=True):
            ask(f"{name}.weight", rows, columns)
            if bias:
                ask(f"{name}.bias", rows)

        before = CHANNELS
        for s, c in enumerate(STAGES):
            for k in range(2):
                ask(f"conv{s}{k}", c, c if k else before, 3, 3)
                ask(f"gamma{s}{k}", c), ask(f"beta{s}{k}", c)
                ask("", c, running=True), ask("", c, running=True)
            before = c
        linear("presence", PRESENCE, STAGES[-1])
        linear("project", HIDDEN, STAGES[-1])
        if kind == "transformer":
            ask("table", WORDS, HIDDEN)
            for block in ("self", "cross"):
                for part in "qkvo":
                    linear(f"{block}.{part}", HIDDEN, HIDDEN)
            for norm in ("self", "cross"):
                ask(f"{norm}.gamma", HIDDEN), ask(f"{norm}.beta", HIDDEN)
            linear("inner", 10, HIDDEN), linear("outer", HIDDEN, 10)
            ask("ffn.gamma", HIDDEN), ask("ffn.beta", HIDDEN)
        else:
            self.layers, gates = (1, 3) if kind == "gru" else (2, 4)
            for k in range(self.layers):
                linear(f"bridge{k}", HIDDEN, HIDDEN)
            ask("table", WORDS, EMBEDDING)
            for k in range(self.layers):
                for name in ("ih", "hh"):
                    ask(f"{name}{k}", gates * HIDDEN, HIDDEN + (EMBEDDING if name == "ih" and k == 0 else 0))
                for name in ("b_ih", "b_hh"):
                    ask(f"{name}{k}", gates * HIDDEN)
            if kind == "gru":
                linear("query", HIDDEN, HIDDEN, False), linear("key", HIDDEN, HIDDEN, False)
                ask("score", 1, HIDDEN), linear("gate", 1, HIDDEN)
            linear("readout", EMBEDDING, 2 * HIDDEN)
        ask("bias", WORDS)

    def linear(self, name, x):
        return F.linear(x, self.p[f"{name}.weight"], self.p[f"{name}.bias"])

    def encode(self, images):
        x, p = images.permute(0, 3, 1, 2), self.p
        for s in range(len(STAGES)):
            for k in range(2):
                y = F.conv2d(x, p[f"conv{s}{k}"], padding=1)
                y = F.relu(F.batch_norm(y, None, None, p[f"gamma{s}{k}"], p[f"beta{s}{k}"], training=True))
                x = x + y if k else F.max_pool2d(y, 2)
        return x.flatten(2).transpose(1, 2)  # [images, locations, features]

    def recurrent(self, h, before):
        """h [locations, hidden]; before: the word before each -> logits, weights"""
        p, context, logits, alphas = self.p, h.mean(0), [], []
        state = [torch.tanh(self.linear(f"bridge{k}", context)) for k in range(self.layers)]
        cell = [context] * self.layers
        for word in before:
            c = context
            if self.kind == "gru":
                s = state[-1]
                e = torch.tanh(p["query.weight"] @ s + h @ p["key.weight"].T) @ p["score"][0]
                alphas.append(torch.softmax(e, 0))
                c = alphas[-1] @ h * torch.sigmoid(self.linear("gate", s))
            x = torch.cat([p["table"][word] * EMBEDDING**0.5, c])
            for k in range(self.layers):
                weights = [p[f"{n}{k}"] for n in ("ih", "hh", "b_ih", "b_hh")]
                if self.kind == "gru":
                    state[k] = torch.gru_cell(x[None], state[k][None], *weights)[0]
                else:
                    state[k], cell[k] = (y[0] for y in torch.lstm_cell(x[None], (state[k][None], cell[k][None]), *weights))
                x = state[k]
            logits.append(p["table"] @ torch.tanh(self.linear("readout", torch.cat([c, x]))) + p["bias"])
        return torch.stack(logits), torch.stack(alphas) if alphas else None

    def attend(self, block, x, y, causal):
        q, k, v = (self.linear(f"{block}.{n}", z).view(len(z), 2, -1).transpose(0, 1) for n, z in zip("qkv", (x, y, y)))
        z = F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(0, 1).flatten(1)
        return F.layer_norm(x + self.linear(f"{block}.o", z), [HIDDEN], self.p[f"{block}.gamma"], self.p[f"{block}.beta"])

    def transformer(self, h, before):
        p, n, half = self.p, len(before), HIDDEN // 2
        angle = torch.arange(n)[:, None] * 10000.0 ** (-2 * torch.arange(half, dtype=torch.float64) / HIDDEN)
        x = p["table"][before] * HIDDEN**0.5 + torch.cat([angle.sin(), angle.cos()], 1)
        x = self.attend("cross", self.attend("self", x, x, True), h, False)
        y = self.linear("outer", F.gelu(self.linear("inner", x)))
        return F.layer_norm(x + y, [HIDDEN], p["ffn.gamma"], p["ffn.beta"]) @ p["table"].T + p["bias"], None

    def __call__(self, images):
        grids = self.encode(images)
        h = torch.tanh(self.linear("project", grids))
        decode = self.transformer if self.kind == "transformer" else self.recurrent
        start = torch.tensor([END])
        both = [decode(h[i], torch.cat([start, c[:-1]])) for i, c in zip(OF_IMAGE, captions())]
        return self.linear("presence", grids.mean(1)), [y for y, _ in both], [a for _, a in both]

    def loss(self, images):
        presence, logits, alphas = self(images)
        words = torch.cat(captions())
        words[words == UNKNOWN] = -100
        loss = F.cross_entropy(torch.cat(logits), words, label_smoothing=SMOOTHING)
        if self.kind == "gru":
            loss = loss + SPREAD * torch.stack([((1 - a.sum(0)) ** 2).sum() for a in alphas]).mean()
        return loss + F.binary_cross_entropy_with_logits(presence, (numbers(7, IMAGES, PRESENCE) > 0).double())


images = numbers(50, IMAGES, SIDE, SIDE, CHANNELS)
for kind in ("gru", "lstm", "transformer"):
    m = Captioner(kind)
    with torch.no_grad():
        presence, logits, alphas = m(images)
    store(f"presence_{kind}", presence.flatten())
    store(f"logits_{kind}", torch.cat(logits).flatten())
    if kind == "gru":
        store(f"weights_{kind}", torch.cat(alphas).flatten())
    optimizer = torch.optim.AdamW(m.p.values(), lr=0.01, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = m.loss(images)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    store(f"losses_{kind}", losses)
pathlib.Path(__file__).with_name("captioner.txt").write_text("".join(lines))
