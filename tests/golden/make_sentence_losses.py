#!/usr/bin/env python3
"""Writes sentence_losses.txt: the losses of 20 steps in which the tiny BERT of make_tiny_bert.py learns with each loss
of sentence-transformers, in float64, without dropout: mean pooling, batches of 4 of 12 rows in attend's random order,
those of MultipleNegativesRankingLoss by NoDuplicatesBatchSampler, AdamW with linear decay. Says how far the losses in
float32 are from these.

    python3 make_sentence_losses.py

Made with sentence-transformers 6.2.0, transformers 5.23.0, torch 2.15.0 on a CPU. tests/sentence/sentence_losses.c learns
the same rows.
"""
import pathlib
from unittest import mock

import torch
from sentence_transformers.base.sampler import NoDuplicatesBatchSampler
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.losses import TripletDistanceMetric
from transformers import BertConfig, BertModel, get_linear_schedule_with_warmup

from tiny_weights import numbers

# anchor, positive, negative, label, score
ROWS = [("a b c", "a b d", "x y", 0, 0.9), ("e f", "x y z w", "b", 1, 0.1), ("q", "r s", "a b c", 2, 0.3),
        ("k l m n o p q r s t", "k l m n o p", "c c c", 0, 0.75), ("a b c", "c b a", "u v", 1, 1.0),
        ("h i j", "j i h", "e f", 2, 0.5), ("a b c", "b c d", "m n", 0, 0.8), ("w", "v w", "h i j", 1, 0.6),
        ("f g h", "f g", "t u v w", 2, 0.4), ("z y", "y z", "a b d", 0, 0.95),
        ("i j k", "k j", "z y", 1, 0.2), ("o o", "p p", "r s", 2, 0.55)]
SEED, BATCH, CLASSES = 8, 4, 3
STEPS, WARMUP, RATE, DECAY, CLIP = 20, 4, 0.0005, 0.01, 1.0


def philox(seed, counter):
    """Philox4x32-10 (Salmon et al. 2011), att_random."""
    key, x = [seed % 2**32, seed >> 32], list(counter)
    for _ in range(10):
        a, b = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [b >> 32 ^ x[1] ^ key[0], b % 2**32, a >> 32 ^ x[3] ^ key[1], a % 2**32]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return x


assert philox(0, [0, 0, 0, 0]) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def permutation(epoch, n):
    """The order of rows in an epoch from 0, att_permutation."""
    x = list(range(n))
    for i in range(n - 1, 0, -1):
        words = philox(SEED, [i, 0, epoch, 0])
        k = (words[0] << 32 | words[1]) % (i + 1)
        x[i], x[k] = x[k], x[i]
    return x


class Rows:
    """What the sampler asks of a data set."""

    def __init__(self, columns):
        self.columns, self.column_names = columns, [str(i) for i in range(columns)]

    def __len__(self):
        return len(ROWS)

    def __getitem__(self, i):
        return {str(k): ROWS[i][k] for k in range(self.columns)}


def epochs(columns, distinct):
    epoch = 0
    while True:
        order = permutation(epoch, len(ROWS))
        if distinct:
            sampler = NoDuplicatesBatchSampler(Rows(columns), BATCH, False)
            with mock.patch("torch.randperm", lambda n, generator, dtype: torch.tensor(order, dtype=dtype)):
                yield from list(sampler)
        else:
            yield from (order[i:i + BATCH] for i in range(0, len(order), BATCH))
        epoch += 1


class Embedder(torch.nn.Module):
    """A SentenceTransformer of BERT and mean pooling: of ids, its embeddings."""

    def __init__(self, dtype):
        super().__init__()
        config = BertConfig(vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
                            intermediate_size=20, hidden_act="gelu", max_position_embeddings=16, type_vocab_size=2,
                            layer_norm_eps=1e-5, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        self.bert = BertModel(config, add_pooling_layer=False).to(dtype).train()
        self.bert.load_state_dict({k: numbers(k, v.shape).to(dtype) if v.is_floating_point() else v
                                   for k, v in self.bert.state_dict().items()})
        self.device = torch.device("cpu")

    def forward(self, features):
        mask = features["attention_mask"]
        hidden = self.bert(input_ids=features["input_ids"], attention_mask=mask).last_hidden_state
        weight = mask.unsqueeze(-1).to(hidden.dtype)
        return {"sentence_embedding": (hidden * weight).sum(1) / weight.sum(1)}


def features(texts):
    ids = [[2] + [5 + ord(word) - ord("a") for word in text.split()] + [3] for text in texts]
    width = max(map(len, ids))
    return {"input_ids": torch.tensor([x + [0] * (width - len(x)) for x in ids]),
            "attention_mask": torch.tensor([[1] * len(x) + [0] * (width - len(x)) for x in ids])}


def train(make, columns, target, distinct, dtype):
    """The losses of the steps. target: the column of labels or scores; None: there are none."""
    loss_of = make(Embedder(dtype)).to(dtype)
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
        loss = loss_of([features([ROWS[i][k] for i in batch]) for k in range(columns)], labels)
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
    "triplet_margin": (lambda m: losses.TripletLoss(m, triplet_margin=1.0), 3, None, False),
    "triplet_cosine": (lambda m: losses.TripletLoss(m, TripletDistanceMetric.COSINE, 0.25), 3, None, False),
    "softmax": (lambda m: losses.SoftmaxLoss(m, 12, CLASSES), 2, 3, False),
}

if __name__ == "__main__":
    lines = []
    for name, case in CASES.items():
        exact, single = train(*case, torch.float64), train(*case, torch.float32)
        print(f"{name}: float32 is off by {max(abs(a - b) / (a or 1) for a, b in zip(exact, single)):.1e}; "
              f"{exact[0]:.6f} to {exact[-1]:.6f}")
        lines.append(" ".join([name] + [f"{x + 0.0:.9g}" for x in exact]))
    pathlib.Path(__file__).with_name("sentence_losses.txt").write_text("\n".join(lines) + "\n")
