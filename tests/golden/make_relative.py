#!/usr/bin/env python3
"""Writes relative_buckets.txt: the buckets of relative positions, by the code of T5. A line has "both" or "causal", the
number of buckets and the greatest distance, then FIRST:BUCKET where the bucket changes, from distance (key - query)
FIRST on, and one past the last distance.

    python3 make_relative.py

Made with transformers 5.23.0, torch 2.15.0 on a CPU.
"""
import pathlib

import torch
from transformers.models.t5.modeling_t5 import T5Attention

REACH = 1500
lines = []
for both, buckets, greatest in [
    (True, 32, 128), (True, 4, 2), (True, 13, 6), (True, 64, 1000), (True, 33, 20), (True, 128, 1024),
    (False, 32, 128), (False, 2, 3), (False, 13, 7), (False, 64, 1000), (False, 127, 300),
]:
    distances = torch.arange(-REACH, REACH + 1)
    found = T5Attention._relative_position_bucket(distances, both, buckets, greatest).tolist()
    changes = [f"{d}:{b}" for d, b, before in zip(distances.tolist(), found, [None] + found) if b != before]
    lines.append(f"{'both' if both else 'causal'} {buckets} {greatest} {' '.join(changes)} {REACH + 1}")
pathlib.Path(__file__).with_name("relative_buckets.txt").write_text("\n".join(lines) + "\n")
