#!/usr/bin/env python3
"""Writes the golden files of tests/core/attention_golden.c with PyTorch, computed in float64.

Needs torch 2.5 or later. Inputs are those of check_numbers in tests/fixtures/check.h, so only results are stored:
    attention.f32   all results, one after the other
    attention.txt   where each is: CASE ARRAY OFFSET DIMENSIONS...
"""
import pathlib

import numpy
import torch
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import normalize, scaled_dot_product_attention

import check_numbers

here = pathlib.Path(__file__).parent


def numbers(seed, *shape):
    return check_numbers.numbers(seed, *shape).requires_grad_()


results, places = [], []


def store(case, **arrays):
    for name, x in arrays.items():
        offset = sum(len(r) for r in results)
        results.append(x.detach().numpy().astype("<f4").ravel())
        places.append(f"{case} {name} {offset} {' '.join(str(n) for n in x.shape)}\n")


B, TQ, TK = 2, 5, 7


def attention(case, f, heads=3, kv_heads=3, dim=9, key_dim=9, value_dim=9, params=(), modifiers=(), storage=None):
    """Output and gradients of out, or out and lse, = f(q, k, v, parameters of the score, of modifiers...) where dout
    and dlse reach them. storage: the type that q, k, v and dout are rounded to."""
    x = [numbers(1, B, heads, TQ, dim), numbers(2, B, kv_heads, TK, key_dim), numbers(3, B, kv_heads, TK, value_dim),
         numbers(11, B, heads, TQ, value_dim)]
    if storage:
        x = [t.detach().to(storage).to(torch.float64).requires_grad_() for t in x]
    *qkv, dout = x
    inputs = dict(zip(("dq", "dk", "dv"), qkv))
    for i, shape in enumerate(params):
        inputs[f"dparam{i}"] = numbers(21 + i, *shape)
    for i, shape in enumerate(modifiers):
        inputs[f"dmodifier{i}"] = numbers(6 + i, *shape)
    y = f(*inputs.values())
    outputs = dict(zip(("out", "lse"), y if isinstance(y, tuple) else (y,)))
    slopes = [dout, numbers(12, B, heads, TQ)][: len(outputs)]
    gradients = torch.autograd.grad(list(outputs.values()), list(inputs.values()), slopes)
    store(case, **outputs, **dict(zip(inputs, gradients)))


# ---- scaled dot products: PyTorch's own function

sdpa = scaled_dot_product_attention
mask = numbers(7, B, 1, TQ, TK) > -0.4
assert mask.any(-1).all()
attention("dot", sdpa)
attention("dot_causal", lambda q, k, v: sdpa(q, k, v, is_causal=True))  # aligned at the top left
attention("dot_boolean", lambda q, k, v: sdpa(q, k, v, attn_mask=mask))
attention("dot_bias", lambda q, k, v, b: sdpa(q, k, v, attn_mask=b.expand(B, -1, -1, -1)), modifiers=[(1, 3, TQ, TK)])
attention("dot_grouped", lambda q, k, v: sdpa(q, k, v, enable_gqa=True), heads=6, kv_heads=2)
attention("dot_values", sdpa, value_dim=4)

distance = torch.arange(TK) - torch.arange(TQ)[:, None]
window = (distance >= -2) & (distance <= 1)
attention("dot_window", lambda q, k, v: sdpa(q, k, v, attn_mask=window))
for storage in (torch.float16, torch.bfloat16):
    grouped = lambda q, k, v: sdpa(q, k, v, enable_gqa=True)
    attention(f"dot_{str(storage)[6:]}", grouped, heads=6, kv_heads=2, storage=storage)

# ---- what is done to scores, by its formula; flex_attention, which has no gradients on a CPU, must have the same outputs


def modified(modify, flex_modify=None):
    """out and lse of softmax(modify(scores, parameters...)), the first TK columns of it."""

    def f(q, k, v, *params):
        s = modify(q @ k.mT / 3, *params)
        out = torch.softmax(s, -1)[..., :TK] @ v
        if flex_modify:
            x = [t.detach() for t in (q, k, v, *params)]
            flex = flex_attention(*x[:3], lambda s, b, h, i, j: flex_modify(s, h, j - i, *x[3:]))
            torch.testing.assert_close(flex, out.detach(), atol=1e-6, rtol=0)
        return out, torch.logsumexp(s, -1)

    return f


def alibi(s, slopes):
    return s - slopes[:, None, None] * distance.abs()


def softcap(s):
    return 0.75 * torch.tanh(s / 0.75)


def with_sink(s, sinks):
    return torch.cat((s, sinks[:, None, None].expand(B, -1, TQ, 1)), -1)


def stacked(s, slopes, sinks):
    return with_sink(softcap(alibi(s, slopes)).masked_fill(~window, -torch.inf), sinks)


attention("alibi", modified(alibi, lambda s, h, d, slopes: s - slopes[h] * d.abs()), modifiers=[(3,)])
attention("softcap", modified(softcap, lambda s, h, d: softcap(s)))
attention("sink", modified(with_sink), modifiers=[(3,)])
attention("stacked", modified(stacked), modifiers=[(3,), (3,)])

# ---- other scores, by their formulas


def scored(score):
    return lambda q, k, v, *params: torch.softmax(score(q, k, *params), -1) @ v


def additive(q, k, w, wq=None, wk=None):
    """w . tanh(q + k), or w . tanh(wq q + wk k); w [H, A], wq [H, A, dim], wk [H, A, key_dim]"""
    if wq is not None:
        q, k = q @ wq.mT, k @ wk.mT
    return (torch.tanh(q[..., :, None, :] + k[..., None, :, :]) * w[:, None, None, :]).sum(-1)


attention("plain_dot", scored(lambda q, k: q @ k.mT))
attention("cosine", scored(lambda q, k: normalize(q, dim=-1) @ normalize(k, dim=-1).mT))
attention("general", scored(lambda q, k, w: q @ w @ k.mT), key_dim=8, params=[(3, 9, 8)])
attention("general_one", scored(lambda q, k, w: q @ w @ k.mT), key_dim=8, params=[(1, 9, 8)])
attention("additive", scored(additive), params=[(3, 9)])
attention("additive_one", scored(additive), params=[(1, 9)])
attention("additive_projected", scored(additive), key_dim=8, params=[(3, 6), (3, 6, 9), (3, 6, 8)])
attention("additive_projected_one", scored(additive), key_dim=8, params=[(1, 6), (1, 6, 9), (1, 6, 8)])

# ---- the layer with its projections

E = 12
layer = torch.nn.MultiheadAttention(E, 3, batch_first=True, dtype=torch.float64)
with torch.no_grad():
    for seed, p in enumerate((layer.in_proj_weight, layer.in_proj_bias, layer.out_proj.weight, layer.out_proj.bias)):
        p.copy_(numbers(31 + seed, *p.shape))
memory = numbers(36, B, TK, E)
store("layer", out=layer(numbers(35, B, TQ, E), memory, memory, need_weights=False)[0])

(here / "attention.f32").write_bytes(numpy.concatenate(results).tobytes())
(here / "attention.txt").write_text("".join(places))
