#!/usr/bin/env python3
"""Writes static_losses.txt: the losses of 20 steps in which static embeddings, static/static_f32 of make_static.py, learn
with losses of sentence-transformers in float64, in the batches of make_sentence_losses.py: AdamW with linear decay. Says
how far the losses in float32 are from these.

    python3 make_static_losses.py

Made with sentence-transformers 6.2.0, torch 2.15.0 on a CPU. tests/sentence/static_training.c learns the same rows.
"""
import pathlib

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import losses
from transformers import get_linear_schedule_with_warmup

from make_sentence_losses import CLASSES, CLIP, DECAY, ROWS, STEPS, WARMUP, epochs
from tiny_weights import numbers

HERE = pathlib.Path(__file__).parent
RATE = 0.001


def train(make, columns, target, distinct, dtype):
    model = SentenceTransformer(str(HERE / "static/static_f32"), device="cpu").to(dtype)
    loss_of = make(model).to(dtype)
    if hasattr(loss_of, "classifier"):
        loss_of.classifier.load_state_dict({k: numbers("classifier." + k, v.shape).to(dtype)
                                            for k, v in loss_of.classifier.state_dict().items()})
    parameters = list(loss_of.parameters())
    optimizer = torch.optim.AdamW([{"params": [p for p in parameters if p.dim() > 1], "weight_decay": DECAY},
                                   {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}], lr=RATE)
    schedule = get_linear_schedule_with_warmup(optimizer, WARMUP, STEPS)
    found = []
    for batch, _ in zip(epochs(columns, distinct), range(STEPS)):
        optimizer.zero_grad()
        labels = target and torch.tensor([ROWS[i][target] for i in batch])
        if labels is not None and labels.is_floating_point():
            labels = labels.to(dtype)
        loss = loss_of([model[0].preprocess([ROWS[i][k] for i in batch]) for k in range(columns)], labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        schedule.step()  # before: a step counts from 1 here
        optimizer.step()
        found.append(loss.item())
    return found


CASES = {
    "cosine": (losses.CosineSimilarityLoss, 2, 4, False),
    "ranking": (losses.MultipleNegativesRankingLoss, 2, None, True),
    "ranking_negatives": (losses.MultipleNegativesRankingLoss, 3, None, True),
    "triplet": (losses.TripletLoss, 3, None, False),
    "softmax": (lambda m: losses.SoftmaxLoss(m, m.get_embedding_dimension(), CLASSES), 2, 3, False),
}

if __name__ == "__main__":
    lines = []
    for name, case in CASES.items():
        exact, single = train(*case, torch.float64), train(*case, torch.float32)
        print(f"{name}: float32 is off by {max(abs(a - b) / (a or 1) for a, b in zip(exact, single)):.1e}; "
              f"{exact[0]:.6f} to {exact[-1]:.6f}")
        lines.append(" ".join([name] + [f"{x + 0.0:.9g}" for x in exact]))
    (HERE / "static_losses.txt").write_text("\n".join(lines) + "\n")
