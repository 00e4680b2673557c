"""Weights of tiny models, which follow from their names; tests/fixtures/tiny_model.h makes the same."""
import numpy
import torch

# Of weights whose name has this, the first that fits: so that decoding finds more than one token again and again.
FACTORS = {"shared": 3, "embed_tokens": 3, "wte": 3, "lm_head": 3, "attn.": 0.5, "fc1.weight": 2, "fc2.weight": 2, ".fc": 0.5,
           "layer_norm.bias": 0.5, "logits_bias": 0.5}


def numbers(name, shape):
    """((hash >> 8) / 2^24 - 1/2) * factor, exact in f32; the norms' weights are near 1."""
    seed = sum(ord(c) * (i + 1) for i, c in enumerate(name))
    h = (numpy.arange(numpy.prod(shape), dtype=numpy.uint64) * 0x9E3779B9 + seed * 0x85EBCA77) % 2**32
    for shift, factor in (16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1):
        h = (h ^ (h >> numpy.uint64(shift))) * factor % 2**32
    x = (h >> numpy.uint64(8)).astype(numpy.float32) / numpy.float32(2**24) - numpy.float32(0.5)
    x *= next((f for part, f in FACTORS.items() if part in name), 1)
    is_norm = name.endswith(("LayerNorm.weight", "norm.weight", "ln_1.weight", "ln_2.weight", "ln_f.weight"))
    return torch.tensor((x + 1 if is_norm else x).reshape(shape))
