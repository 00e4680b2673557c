#!/usr/bin/env python3
"""Writes steps.txt: the losses of twenty steps of learning by PyTorch, in float64, of a tiny MarianMTModel and of
language models of a GRU and of an LSTM, with several optimizers. A line is the model and the optimizer, and the losses.
Says how far PyTorch's own losses in float32 are from these.

    python3 make_steps.py

Made with transformers 5.23.0, torch 2.15.0 on a CPU. tests/model/steps.c makes the same weights and texts.
"""
import math
import pathlib

import torch
from torch.nn.utils.rnn import pack_sequence, pad_sequence
from transformers import MarianConfig, MarianMTModel

from check_numbers import numbers

STEPS, PAIRS, TOKENS, HIDDEN, INNER = 20, 6, 24, 16, 40
END, PAD = 0, TOKENS - 1
SMOOTHING, WARMUP = 0.1, 5


# ---- texts

def tokens(seed, lengths):
    """Texts of tokens that are neither end nor padding, small ones more often."""
    x = ((1 + numbers(seed, sum(lengths))) / 2) ** 2
    return (1 + torch.floor(x * (TOKENS - 2)).long()).split(lengths)


def batch(step):
    source = tokens(1000 + 2 * step, [1 + (3 * step + 5 * pair) % 9 for pair in range(PAIRS)])
    target = tokens(1001 + 2 * step, [1 + (2 * step + 3 * pair) % 7 for pair in range(PAIRS)])
    return source, [torch.cat([y, torch.tensor([END])]) for y in target]


# ---- models; weights by their names

class Translator(torch.nn.Module):
    """Names of att_transformer's parameters."""
    NAMES = [("transformer.final_logits_bias", "output.bias"), ("transformer.model.", ""), (".layers.", "."),
             ("self_attn_layer_norm", "attention_norm"), ("encoder_attn_layer_norm", "cross_norm"),
             ("final_layer_norm", "feed_forward_norm"), ("self_attn", "attention"), ("encoder_attn", "cross"),
             ("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"), ("out_proj", "output"),
             ("fc1", "feed_forward.inner"), ("fc2", "feed_forward.outer")]

    def __init__(self):
        super().__init__()
        config = MarianConfig(
            vocab_size=TOKENS, d_model=HIDDEN, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=INNER, decoder_ffn_dim=INNER, max_position_embeddings=16,
            activation_function="relu", scale_embedding=True, dropout=0.0, attention_dropout=0.0,
            activation_dropout=0.0, eos_token_id=END, pad_token_id=PAD, decoder_start_token_id=PAD)
        self.transformer = MarianMTModel(config).train()
        bias = self.transformer.final_logits_bias
        del self.transformer.final_logits_bias  # which learns here, too
        self.transformer.final_logits_bias = torch.nn.Parameter(bias)

    def loss(self, step):
        source, target = batch(step)
        x, y = (pad_sequence(texts, batch_first=True, padding_value=PAD) for texts in (source, target))
        before = torch.cat([torch.full((PAIRS, 1), PAD), y[:, :-1]], 1)
        logits = self.transformer(input_ids=x, attention_mask=(x != PAD).long(), decoder_input_ids=before).logits
        return torch.nn.functional.cross_entropy(logits[..., :PAD].flatten(0, 1), y.flatten(), ignore_index=PAD,
                                                 label_smoothing=SMOOTHING)


class Language(torch.nn.Module):
    NAMES = []

    def __init__(self, layers):
        super().__init__()
        self.table = torch.nn.Embedding(TOKENS, HIDDEN)
        self.rnn = layers(HIDDEN, HIDDEN, 2)
        self.output = torch.nn.Linear(HIDDEN, TOKENS)

    def loss(self, step):
        texts, _ = batch(step)
        targets = [torch.cat([x[1:], torch.tensor([END])]) for x in texts]
        hidden, _ = self.rnn(pack_sequence([self.table(x) for x in texts], enforce_sorted=False))
        target = pack_sequence(targets, enforce_sorted=False)
        return torch.nn.functional.cross_entropy(self.output(hidden.data), target.data, label_smoothing=SMOOTHING)


@torch.no_grad()
def fill(model):
    for name, p in model.named_parameters():
        if not p.requires_grad:  # positions
            continue
        for theirs, ours in model.NAMES:
            name = name.replace(theirs, ours)
        seed = sum(ord(c) * (i + 1) for i, c in enumerate(name))
        x = numbers(seed, *p.shape)
        matrix = p.dim() == 2 and p.shape[0] > 1
        p.copy_(x * 3 / 8 if matrix else 1 + x / 8 if name.endswith("norm.weight") else x / 8)
        if name == "shared.weight":
            p[PAD] = 0


# ---- learning

PAPER = dict(betas=(0.9, 0.98), eps=1e-9)


def cosine(step):
    return 0.1 + 0.9 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))) / 2


# name: optimizer, the rate of a step from 1 on after the warm-up as a share of the greatest, the greatest norm
SETTINGS = {
    "adam": (lambda p: torch.optim.Adam(p, lr=0.02, **PAPER), lambda step: math.sqrt(WARMUP / step), 1.0),
    "adamw": (lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1), cosine, math.inf),
    "sgd": (lambda p: torch.optim.SGD(p, lr=0.2, momentum=0.9), lambda step: 1.0, 0.5),
}


def losses(make, setting, dtype):
    model = make().to(dtype)
    fill(model)
    new, share, clip = SETTINGS[setting]
    optimizer = new(model.parameters())
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: (i + 1) / WARMUP if i + 1 < WARMUP else share(i + 1))
    found = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = model.loss(step)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        schedule.step()
        found.append(loss.item())
    return found


def main():
    lines, furthest = [], 0.0
    models = {"transformer": Translator, "gru": lambda: Language(torch.nn.GRU),
              "lstm": lambda: Language(torch.nn.LSTM)}
    for name, make in models.items():
        for setting in SETTINGS:
            exact, short = (losses(make, setting, dtype) for dtype in (torch.float64, torch.float32))
            furthest = max([furthest] + [abs(a - b) / a for a, b in zip(exact, short)])
            lines.append(f"{name}_{setting} {' '.join(f'{x:.9g}' for x in exact)}\n")
    pathlib.Path(__file__).with_name("steps.txt").write_text("".join(lines))
    print(f"PyTorch in float32 is up to {furthest:.1e} of a loss away")


main()
