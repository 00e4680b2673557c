#!/usr/bin/env python3
"""Writes similarity_steps.txt: the losses of ten steps in which the tiny BERT of make_tiny_bert.py learns sentence
similarity, by PyTorch in float64: mean pooling, cosines, squared errors, AdamW; "modules": with a Dense and a LayerNorm
after the pooling. Says how far PyTorch's own losses in float32 are from these.

    python3 make_similarity_steps.py

Made with transformers 5.23.0, torch 2.15.0 on a CPU. tests/sentence/sentence_training.c learns the same pairs.
"""
import pathlib

import torch
from transformers import BertConfig, BertModel, get_linear_schedule_with_warmup

from tiny_weights import numbers

PAIRS = [("a b c", "a b d", 0.9), ("e f", "x y z w", 0.1), ("", "q", 0.3), ("k l m n o p q r s t", "k l m n o p", 0.75),
         ("c", "c", 1.0), ("h i j", "j i h", 0.5)]
STEPS, WARMUP, RATE, DECAY, CLIP = 10, 2, 0.01, 0.1, 1.0


def tokens(text):
    return [2] + [5 + ord(word) - ord("a") for word in text.split()] + [3]


def embed(model, head, texts):
    """Each alone, so that nothing is padded."""
    hidden = [model(torch.tensor([tokens(text)])).last_hidden_state[0] for text in texts]
    return head(torch.stack([h.mean(0) for h in hidden]))


def modules():
    """Dense and LayerNorm, with weights by the names that these have in their files"""
    linear, norm = torch.nn.Linear(12, 7), torch.nn.LayerNorm(7)
    linear.load_state_dict({k: numbers("linear." + k, v.shape) for k, v in linear.state_dict().items()})
    norm.load_state_dict({k: numbers("norm." + k, v.shape) for k, v in norm.state_dict().items()})
    return torch.nn.Sequential(linear, torch.nn.Tanh(), norm)


def losses(dtype, head):
    config = BertConfig(vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
                        intermediate_size=20, hidden_act="gelu", max_position_embeddings=16, type_vocab_size=2,
                        layer_norm_eps=1e-5, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertModel(config, add_pooling_layer=False).to(dtype).train()
    model.load_state_dict({k: numbers(k, v.shape).to(dtype) if v.is_floating_point() else v
                           for k, v in model.state_dict().items()})
    head = head.to(dtype)
    parameters = [*model.parameters(), *head.parameters()]
    matrices = [p for p in parameters if p.dim() > 1]
    vectors = [p for p in parameters if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY},
                                   {"params": vectors, "weight_decay": 0.0}], lr=RATE)
    schedule = get_linear_schedule_with_warmup(optimizer, WARMUP, STEPS)
    first, second, scores = zip(*PAIRS)
    found = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        cosine = torch.nn.functional.cosine_similarity(embed(model, head, first), embed(model, head, second))
        loss = torch.nn.functional.mse_loss(cosine, torch.tensor(scores, dtype=dtype))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        schedule.step()  # before: a step counts from 1 here
        optimizer.step()
        found.append(loss.item())
    return found


lines = []
for name, head in ("losses", torch.nn.Sequential), ("modules", modules):
    exact, single = losses(torch.float64, head()), losses(torch.float32, head())
    print(name, "in float32 are off by", max(abs(a - b) / a for a, b in zip(exact, single)))
    lines.append(f"{name} {' '.join(f'{x:.12g}' for x in exact)}\n")
pathlib.Path(__file__).with_name("similarity_steps.txt").write_text("".join(lines))
