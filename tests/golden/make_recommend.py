#!/usr/bin/env python3
"""Writes recommend.txt: tiny SASRec and BERT4Rec models in float64, made of PyTorch's and transformers' layers and of the
code of Kang, McAuley (modules.py and model.py of github.com/kang205/SASRec, translated, with its padding from the left):
states of all items of three histories, and losses of all states with their gradients.

    python3 make_recommend.py

Lines of a case: CASE.settings, as att_recommender_new has them; CASE.states; CASE.LOSS, the sum over all states;
CASE.LOSS.PARAMETER, its gradient. Weights follow from their names (tiny_weights.py), names are attend's.

Made with transformers 5.24.0, torch 2.15.0 on a CPU. tests/recommend/recommender.c makes the same.
"""
import json
import math
import pathlib

import torch
import torch.nn.functional as F
from torch import nn
from transformers import BertConfig, BertForMaskedLM

from tiny_weights import numbers

HIDDEN, HEADS, INNER, LAYERS, ITEMS, POSITIONS, CONTENT = 4, 2, 6, 2, 7, 6, 3
MASK = ITEMS
HISTORIES = [[3, 1, 4, 1, 5], [2], [6, 0, 2]]
MASKED = [[3, MASK, 4, 1, 5], [MASK], [6, 0, MASK]]
NEGATIVES, CALIBRATION = 2, 0.75
torch.set_default_dtype(torch.float64)


class Parameters(dict):
    """Leaves by attend's names, made when they are asked for"""

    def get(self, name, *shape):
        if name not in self:
            self[name] = numbers(name, shape).double().requires_grad_(not name == "content.vectors")
        return self[name]

    def linear(self, name, inputs, outputs):
        return self.get(f"{name}.weight", outputs, inputs), self.get(f"{name}.bias", outputs)

    def norm(self, name):
        return self.get(f"{name}.weight", HIDDEN), self.get(f"{name}.bias", HIDDEN)


def set_module(module, values):
    """Replaces parameters of a module by tensors, so that gradients reach these."""
    for name, value in values.items():
        *path, last = name.split(".")
        owner = module
        for part in path:
            owner = getattr(owner, part)
        del owner._parameters[last]
        setattr(owner, last, value)


def embedding(p, ids, rows, content):
    table = p.get("item.weight", rows, HIDDEN)
    if content:
        table = table + p.get("content.vectors", rows, CONTENT) @ p.get("content.projection.weight", HIDDEN, CONTENT).T
    return table, table[torch.tensor(ids)]


def last_positions(p, n):
    return p.get("position.weight", POSITIONS, HIDDEN)[POSITIONS - n:]


def torch_layer(p, i, norm_first, activation, eps):
    layer = nn.TransformerEncoderLayer(HIDDEN, HEADS, INNER, 0, activation, eps, True, norm_first)
    part = [p.linear(f"layer.{i}.attention.{x}", HIDDEN, HIDDEN) for x in ("query", "key", "value")]
    values = {"self_attn.in_proj_weight": torch.cat([w for w, _ in part]),
              "self_attn.in_proj_bias": torch.cat([b for _, b in part])}
    for theirs, (w, b) in {"self_attn.out_proj": p.linear(f"layer.{i}.attention.output", HIDDEN, HIDDEN),
                           "linear1": p.linear(f"layer.{i}.feed_forward.inner", HIDDEN, INNER),
                           "linear2": p.linear(f"layer.{i}.feed_forward.outer", INNER, HIDDEN),
                           "norm1": p.norm(f"layer.{i}.attention_norm"),
                           "norm2": p.norm(f"layer.{i}.feed_forward_norm")}.items():
        values[f"{theirs}.weight"], values[f"{theirs}.bias"] = w, b
    set_module(layer.train(), values)  # in training PyTorch has no second, fused path
    return layer


def sasrec(p, block, content=False):
    """With the layers of PyTorch, one history after another"""
    layers = [torch_layer(p, i, block == "pre-norm", "gelu", 1e-8) for i in range(LAYERS)]
    states = []
    for h in HISTORIES:
        table, x = embedding(p, h, ITEMS, content)
        x = (math.sqrt(HIDDEN) * x + last_positions(p, len(h)))[None]
        for layer in layers:
            x = layer(x, nn.Transformer.generate_square_subsequent_mask(len(h)), is_causal=True)
        if block == "pre-norm":
            w, b = p.norm("norm")
            x = F.layer_norm(x, (HIDDEN,), w, b, 1e-8)
        states.append(x[0])
    return torch.cat(states), table


def kang(p):
    """model.py of SASRec: histories are padded from the left, and item 0 is padding."""
    table, _ = embedding(p, [0], ITEMS, False)
    lookup = torch.cat([torch.zeros(1, HIDDEN), table])
    ids = torch.tensor([[0] * (POSITIONS - len(h)) + [i + 1 for i in h] for h in HISTORIES])
    mask = (ids != 0)[..., None].double()
    x = (lookup[ids] * HIDDEN**0.5 + p.get("position.weight", POSITIONS, HIDDEN)) * mask

    def normalize(x, name):
        w, b = p.norm(name)
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True)
        return w * (x - mean) / (variance + 1e-8) ** 0.5 + b

    for i in range(LAYERS):
        queries, keys = normalize(x, f"layer.{i}.attention_norm"), x
        q, k, v = (F.linear(y, *p.linear(f"layer.{i}.attention.{n}", HIDDEN, HIDDEN))
                   for y, n in ((queries, "query"), (keys, "key"), (keys, "value")))
        q, k, v = (torch.cat(y.split(HIDDEN // HEADS, 2), 0) for y in (q, k, v))
        outputs = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
        key_masks = keys.abs().sum(-1).sign().repeat(HEADS, 1)[:, None].expand(outputs.shape)
        outputs = torch.where(key_masks == 0, torch.tensor(-2.0**32 + 1), outputs)
        outputs = torch.where(torch.ones(outputs.shape).tril() == 0, torch.tensor(-2.0**32 + 1), outputs)
        outputs = outputs.softmax(-1) * queries.abs().sum(-1).sign().repeat(HEADS, 1)[..., None]
        x = torch.cat((outputs @ v).split(len(HISTORIES), 0), 2) + queries
        h = normalize(x, f"layer.{i}.feed_forward_norm")
        inner = F.linear(h, *p.linear(f"layer.{i}.feed_forward.inner", HIDDEN, INNER)).relu()
        x = (F.linear(inner, *p.linear(f"layer.{i}.feed_forward.outer", INNER, HIDDEN)) + h) * mask
    x = normalize(x, "norm")
    return torch.cat([x[i, POSITIONS - len(h):] for i, h in enumerate(HISTORIES)]), table


def bert4rec(p, block):
    """Post-norm: BERT of transformers, with its head; pre-norm: PyTorch's layers between the same embedding and head"""
    config = BertConfig(vocab_size=ITEMS + 1, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                        intermediate_size=INNER, hidden_dropout_prob=0, attention_probs_dropout_prob=0,
                        max_position_embeddings=POSITIONS, layer_norm_eps=1e-12, attn_implementation="eager",
                        pad_token_id=None)
    bert = BertForMaskedLM(config).double()
    table, _ = embedding(p, [0], ITEMS + 1, False)
    names = {"embeddings.LayerNorm": p.norm("embedding_norm")}
    head = {"cls.predictions.transform.dense": p.linear("transform", HIDDEN, HIDDEN),
            "cls.predictions.transform.LayerNorm": p.norm("norm")}
    for i in range(LAYERS):
        ours, theirs = f"layer.{i}.", f"encoder.layer.{i}."
        for n in ("query", "key", "value"):
            names[f"{theirs}attention.self.{n}"] = p.linear(f"{ours}attention.{n}", HIDDEN, HIDDEN)
        names[f"{theirs}attention.output.dense"] = p.linear(f"{ours}attention.output", HIDDEN, HIDDEN)
        names[f"{theirs}attention.output.LayerNorm"] = p.norm(f"{ours}attention_norm")
        names[f"{theirs}intermediate.dense"] = p.linear(f"{ours}feed_forward.inner", HIDDEN, INNER)
        names[f"{theirs}output.dense"] = p.linear(f"{ours}feed_forward.outer", INNER, HIDDEN)
        names[f"{theirs}output.LayerNorm"] = p.norm(f"{ours}feed_forward_norm")
    values = {f"bert.{n}.{part}": x for n, pair in names.items() for part, x in zip(("weight", "bias"), pair)}
    values |= {f"{n}.{part}": x for n, pair in head.items() for part, x in zip(("weight", "bias"), pair)}
    values |= {"bert.embeddings.word_embeddings.weight": table,
               "bert.embeddings.position_embeddings.weight": p.get("position.weight", POSITIONS, HIDDEN),
               "bert.embeddings.token_type_embeddings.weight": torch.zeros(2, HIDDEN)}
    set_module(bert, values)
    layers = [torch_layer(p, i, True, "gelu", 1e-12) for i in range(LAYERS)] if block == "pre-norm" else None
    states = []
    for h in MASKED:
        ids, at = torch.tensor([h]), torch.arange(POSITIONS - len(h), POSITIONS)[None]
        if layers:
            x = bert.bert.embeddings(input_ids=ids, position_ids=at)
            for layer in layers:
                x = layer(x)
        else:
            x = bert.bert(ids, position_ids=at).last_hidden_state
        states.append(bert.cls.predictions.transform(x)[0])
    return torch.cat(states), table[:ITEMS]


def losses(states, table):
    targets = torch.tensor([(3 * i + 1) % ITEMS for i in range(len(states))])
    candidates = torch.stack([targets, (targets + 1) % ITEMS, (targets + 3) % ITEMS], 1)
    chosen = (table[candidates] @ states[:, :, None])[:, :, 0]
    alpha = NEGATIVES / (ITEMS - 1)
    beta = alpha * (CALIBRATION * (1 - 1 / alpha) + 1 / alpha)
    item, others = -F.logsigmoid(chosen[:, 0]), -torch.log(1 - torch.sigmoid(chosen[:, 1:]))
    return {"softmax": F.cross_entropy(states @ table.T, targets, reduction="sum"),
            "sampled": F.cross_entropy(chosen, torch.zeros_like(targets), reduction="sum"),
            "binary": item.sum() + others.sum(),
            "gbce": -torch.log(torch.sigmoid(chosen[:, 0]) ** beta).sum() + others.sum()}


SIZES = dict(hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=INNER,
             max_position_embeddings=POSITIONS)
CASES = {
    "pre": ({"model_type": "attend-sasrec", **SIZES}, lambda p: sasrec(p, "pre-norm"), True),
    "post": ({"model_type": "attend-sasrec", "block": "post-norm", **SIZES}, lambda p: sasrec(p, "post-norm"), False),
    "kang": ({"model_type": "attend-sasrec", "block": "sasrec", **SIZES}, kang, False),
    "content": ({"model_type": "attend-sasrec", **SIZES}, lambda p: sasrec(p, "pre-norm", True), True),
    "bert4rec": ({"model_type": "attend-bert4rec", **SIZES}, lambda p: bert4rec(p, "post-norm"), False),
    "bert4rec_pre": ({"model_type": "attend-bert4rec", "block": "pre-norm", **SIZES}, lambda p: bert4rec(p, "pre-norm"),
                     False)}


def store(lines, name, values):
    lines.append(f"{name} {' '.join(f'{float(v):.9g}' for v in values.detach().flatten())}\n")


def main():
    lines = []
    for case, (settings, build, all_losses) in CASES.items():
        lines.append(f"{case}.settings {json.dumps(settings)}\n")
        store(lines, f"{case}.states", build(Parameters())[0])
        for loss in ("softmax", "sampled", "binary", "gbce") if all_losses else ("softmax",):
            p = Parameters()
            value = losses(*build(p))[loss]
            value.backward()
            store(lines, f"{case}.{loss}", value)
            for name, x in p.items():
                if x.requires_grad:
                    store(lines, f"{case}.{loss}.{name}", x.grad)
    (pathlib.Path(__file__).parent / "recommend.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
