#!/usr/bin/env python3
"""Trains a reranker and a classifier with `attend train rerank` on a random encoder of each family, and compares the
folders that it writes with what `transformers` and sentence-transformers' CrossEncoder make of them: the same tensors,
and the same scores of pairs.

    tests/golden/check_trained_classifiers.py [--attend build/attend] [FAMILY...]

Run with sentence-transformers 6.2.0, transformers 5.23.0, torch 2.15.0 on a CPU.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import torch
import transformers
from sentence_transformers import CrossEncoder

import make_encoder_families as encoders
from check_text_classifier_families import settings_of
from make_encoder_families import FACTS
from make_text_classifier_families import TOKENIZERS, bert

LONGEST, ROWS, ALLOWED = 40, 32, 2e-5  # scores are printed with 6 digits


def rows_of(rng):
    """Pairs of facts: the first half of one with its second half, or with that of another"""
    for i in range(ROWS):
        first, other = rng.sample(FACTS, 2)
        words = first.split()
        second = words[len(words) // 2:] if i % 2 else other.split()[len(other.split()) // 2:]
        yield " ".join(words[:len(words) // 2]), " ".join(second), i % 2


def train(attend, base, rows, third, out):
    pairs = base.parent / f"{third}.tsv"
    words = {"score": str, "label": lambda fits: ("no", "yes")[fits]}
    pairs.write_text("".join(f"{a}\t{b}\t{words[third](fits)}\n" for a, b, fits in rows), "utf-8")
    subprocess.run([attend, "train", "rerank", "-m", base, "-p", pairs, "-o", out, "--epochs", "2", "--batch", "8",
                    "--rate", "0.001", "--threads", "2"], check=True, stderr=subprocess.DEVNULL)


def theirs(folder, rows, labels):
    """Scores of CrossEncoder, or probabilities; the class opens the folder without a tensor that it lacks or does not know."""
    _, info = transformers.AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    wrong = {k: v for k, v in info.items() if v}
    if wrong:
        sys.exit(f"{folder}: {wrong}")
    model = CrossEncoder(str(folder), device="cpu")
    scores = torch.tensor(model.predict([(a, b) for a, b, _ in rows], batch_size=1))
    return dict(zip(model.config.id2label.values(), scores.softmax(-1).T)) if labels else {"score": scores}


def ours(attend, folder, rows, labels):
    command = [attend, *(("classify", "--json") if labels else ("rerank",)), "-m", folder, "-p", "-", "--format", "tsv"]
    done = subprocess.run(command, input="".join(f"{a}\t{b}\n" for a, b, _ in rows), text=True, check=True, stdout=subprocess.PIPE)
    if not labels:
        return {"score": torch.tensor([float(x) for x in done.stdout.split()])}
    lines = [{c["label"]: c["probability"] for c in json.loads(x)["classes"]} for x in done.stdout.splitlines()]
    return {name: torch.tensor([x[name] for x in lines]) for name in lines[0]}


def check(attend, family, root):
    rng = random.Random(family)
    base = pathlib.Path(root, "base")
    base.mkdir()
    tokens = (bert if family == "bert" else TOKENIZERS[family])(base, LONGEST)
    encoders.save(family, settings_of(family, tokens, LONGEST, rng), base, dtype=rng.choice([torch.float32, torch.bfloat16]))
    rows = list(rows_of(rng))
    for third in "score", "label":
        out = pathlib.Path(root, third)
        train(attend, base, rows, third, out)
        wanted, are = (f(*x) for f, x in ((theirs, (out, rows, third == "label")), (ours, (attend, out, rows, third == "label"))))
        yield max(float((wanted[name] - are[name]).abs().max()) for name in wanted)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--attend", default="build/attend")
    options.add_argument("families", nargs="*", default=list(TOKENIZERS))
    options = options.parse_args()
    print(f"{'family':12} of scores  of probabilities")
    good = True
    for family in options.families:
        with tempfile.TemporaryDirectory() as root:
            errors = list(check(options.attend, family, root))
            good &= max(errors) < ALLOWED
            print(f"{family:12} {errors[0]:9.1e}  {errors[1]:16.1e}", flush=True)
    sys.exit(not good)


if __name__ == "__main__":
    main()
