#!/usr/bin/env python3
"""Writes text_classifier_losses.txt: the losses of 20 steps in which the tiny BERT of make_tiny_bert.py with a
classifier learns with each loss of sentence-transformers' CrossEncoder, in float64, without dropout: batches of 4 of the
12 rows of make_sentence_losses.py, in the same order. Says how far the losses in float32 are from these. Then
tiny_text_classifier.txt: the logits of that model with one and with three labels for texts, pairs and truncated pairs,
in float64, and how far those in float32 are.

    python3 make_text_classifier_losses.py

Made with sentence-transformers 6.2.0, transformers 5.23.0, torch 2.15.0 on a CPU. tests/classifier/classifier_losses.c
learns the same rows.
"""
import pathlib

import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import losses
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

from make_sentence_losses import CLIP, DECAY, RATE, ROWS, STEPS, WARMUP, epochs
from tiny_weights import numbers

MAX_TOKENS = 14


def pair(a, b, max_tokens=MAX_TOKENS):
    """Tokens and types of "[CLS] a [SEP] b [SEP]", longest first truncated; b None: of a text."""
    a, b = ([5 + ord(word) - ord("a") for word in (text or "").split()] for text in (a, b)) if b is not None else (
        [5 + ord(word) - ord("a") for word in a.split()], None)
    if b is None:
        ids = [2] + a[:max_tokens - 2] + [3]
        return ids, [0] * len(ids)
    while len(a) + len(b) + 3 > max_tokens:
        (a if len(a) > len(b) else b).pop()
    return [2] + a + [3] + b + [3], [0] * (len(a) + 2) + [1] * (len(b) + 1)


def features(pairs):
    tokens = [pair(a, b) for a, b in pairs]
    width = max(len(ids) for ids, _ in tokens)

    def padded(rows):
        return torch.tensor([list(x) + [0] * (width - len(x)) for x in rows])
    return {"input_ids": padded(ids for ids, _ in tokens), "token_type_ids": padded(types for _, types in tokens),
            "attention_mask": padded([1] * len(ids) for ids, _ in tokens)}


def tiny(labels, dtype):
    config = BertConfig(vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
                        hidden_act="gelu", max_position_embeddings=16, type_vocab_size=2, layer_norm_eps=1e-5,
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=labels)
    model = BertForSequenceClassification(config).to(dtype)
    model.load_state_dict({k: numbers(k.removeprefix("bert."), v.shape).to(dtype) if v.is_floating_point() else v
                           for k, v in model.state_dict().items()})
    return model


class Scorer(CrossEncoder):
    """A CrossEncoder of the tiny BERT: what the losses ask of one."""

    def __init__(self, labels, dtype):
        torch.nn.Module.__init__(self)
        self.bert = tiny(labels, dtype).train()
        self.labels = labels

    num_labels = property(lambda self: self.labels)
    device = property(lambda self: torch.device("cpu"))

    def preprocess(self, pairs, prompt=None, task=None):
        return features(pairs)

    def forward(self, features, **_):
        return {"scores": self.bert(**features).logits}


def train(make, labels, columns, target, distinct, dtype):
    """The losses of the steps. target: the column of labels or scores; None: there are none."""
    model = Scorer(labels, dtype)
    loss_of = make(model)
    parameters = list(model.bert.parameters())
    optimizer = torch.optim.AdamW([{"params": [p for p in parameters if p.dim() > 1], "weight_decay": DECAY},
                                   {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}], lr=RATE)
    schedule = get_linear_schedule_with_warmup(optimizer, WARMUP, STEPS)
    found = []
    for batch, _ in zip(epochs(columns, distinct), range(STEPS)):
        optimizer.zero_grad()
        wanted = target and torch.tensor([ROWS[i][target] for i in batch])
        if wanted is not None and wanted.is_floating_point():
            wanted = Double(wanted.to(dtype))
        loss = loss_of([[ROWS[i][k] for i in batch] for k in range(columns)], wanted)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        schedule.step()  # before: a step counts from 1 here
        optimizer.step()
        found.append(loss.item())
    return found


class Double(torch.Tensor):
    """Scores that the losses do not round to float32."""

    def float(self):
        return self.as_subclass(torch.Tensor)


CASES = {
    "binary": (losses.BinaryCrossEntropyLoss, 1, 2, 4, False),
    "labels": (losses.CrossEntropyLoss, 3, 2, 3, False),
    "ranking": (lambda m: losses.MultipleNegativesRankingLoss(m, num_negatives=None), 1, 2, None, True),
    "ranking_negatives": (lambda m: losses.MultipleNegativesRankingLoss(m, num_negatives=None, scale=5.0), 1, 3, None,
                          True),
    "ranking_logits": (lambda m: losses.MultipleNegativesRankingLoss(m, None, 2.0, None), 1, 2, None, True),
    "squared": (losses.MSELoss, 1, 2, 4, False),
    "squared_sigmoid": (lambda m: losses.MSELoss(m, torch.nn.Sigmoid()), 1, 2, 4, False),
}

# b None: a text of its own
TEXTS = [("a b c", "d e"), ("a b c", "k l m n o p q r s t u v w"), ("k l m n o p q r s t", "k l m n o p"), ("", ""),
         ("q", "r s t"), ("a b c d e f g h i j k l m n o p", None), ("x y", None)]


def write(name, lines):
    pathlib.Path(__file__).with_name(name).write_text("\n".join(lines) + "\n")


def logits(labels, dtype):
    model = tiny(labels, dtype).eval()
    rows = []
    for a, b in TEXTS:
        ids, types = pair(a, b)
        with torch.no_grad():
            rows.append(model(torch.tensor([ids]), token_type_ids=torch.tensor([types])).logits[0])
    return rows


if __name__ == "__main__":
    lines = []
    for name, case in CASES.items():
        exact, single = train(*case, torch.float64), train(*case, torch.float32)
        print(f"{name}: float32 is off by {max(abs(a - b) / (a or 1) for a, b in zip(exact, single)):.1e}; "
              f"{exact[0]:.6f} to {exact[-1]:.6f}")
        lines.append(" ".join([name] + [f"{x + 0.0:.9g}" for x in exact]))
    write("text_classifier_losses.txt", lines)
    lines = []
    for labels in 1, 3:
        exact, single = logits(labels, torch.float64), logits(labels, torch.float32)
        print(f"{labels} labels: float32 is off by {max((a - b).abs().max().item() for a, b in zip(exact, single)):.1e}")
        lines += [" ".join(f"{x:.9g}" for x in row) for row in exact]
    write("tiny_text_classifier.txt", lines)
