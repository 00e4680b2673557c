#!/usr/bin/env python3
"""Writes optimizer.txt: parameters after ten steps of PyTorch's optimizers, in float64, and learning rates by
transformers' schedules. A line is a name and its numbers.

    python3 make_optimizer.py

Made with transformers 5.23.0, torch 2.15.0 on a CPU. Inputs are those of check_numbers in tests/fixtures/check.h.
"""
import pathlib

import torch
import transformers

from check_numbers import numbers

STEPS, NUMBERS = 10, 11
WARMUP, ALL, PEAK, LEAST_SHARE = 7, 50, 0.002, 0.1


lines = []


def store(name, values):
    lines.append(f"{name} {' '.join(f'{float(v):.12g}' for v in values)}\n")


def steps(name, make, clip=None):
    x = numbers(1, NUMBERS).requires_grad_()
    optimizer = make([x])
    for step in range(STEPS):
        x.grad = numbers(100 + step, NUMBERS)
        if clip:
            torch.nn.utils.clip_grad_norm_([x], clip)
        optimizer.step()
    store(name, x.detach())


paper = dict(lr=0.01, betas=(0.9, 0.98), eps=1e-9)
steps("adamw", lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.01))
steps("adamw_paper", lambda p: torch.optim.AdamW(p, **paper, weight_decay=0.1))
steps("adamw_clipped", lambda p: torch.optim.AdamW(p, **paper, weight_decay=0), clip=0.5)
steps("adam", lambda p: torch.optim.Adam(p, **paper, weight_decay=0.1))
steps("sgd", lambda p: torch.optim.SGD(p, lr=0.05))
steps("sgd_momentum", lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.1))
steps("sgd_clipped", lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9), clip=0.5)


def rates(name, make):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=PEAK)
    schedule = make(optimizer)
    found = []
    for _ in range(ALL + 1):
        found.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    store(name, found)


rates("constant", lambda o: transformers.get_constant_schedule_with_warmup(o, WARMUP))
rates("inverse_sqrt", lambda o: transformers.get_inverse_sqrt_schedule(o, WARMUP))
rates("cosine", lambda o: transformers.get_cosine_with_min_lr_schedule_with_warmup(
    o, WARMUP, ALL, min_lr_rate=LEAST_SHARE))
rates("linear", lambda o: transformers.get_polynomial_decay_schedule_with_warmup(
    o, WARMUP, ALL, lr_end=LEAST_SHARE * PEAK))
D = 512  # the paper's equation 3
store("paper", [D**-0.5 * min(max(step, 1e-9) ** -0.5, step * 4000**-1.5) for step in range(0, 20001, 400)])
pathlib.Path(__file__).with_name("optimizer.txt").write_text("".join(lines))
