#!/usr/bin/env python3
"""Trains a sentence model, a reranker and a classifier on a random encoder of each family, and compares the folders that
attend writes with what `transformers` and sentence-transformers make of them: the same tensors, and the same vectors,
scores and probabilities.

    tests/golden/check_trained.py [--attend build/attend] [FAMILY...]

Run with sentence-transformers 6.2.0, transformers 5.23.0, torch 2.15.0 on a CPU.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer

import make_encoder_families as encoders
import modern_encoders as modern
from check_text_classifier_families import settings_of
from make_encoder_families import FACTS
from make_text_classifier_families import TOKENIZERS, bert

LONGEST, ROWS, ALLOWED = 40, 32, 2e-5  # scores are printed with 6 digits
# EmbeddingGemma has no classifier
MAKE = {**TOKENIZERS, "gemma3_text": lambda folder, longest: modern.gemma(encoders.pieces(), folder, longest)}


def rows_of(rng):
    """Pairs of facts: the first half of one with its second half, or with that of another"""
    for i in range(ROWS):
        first, other = rng.sample(FACTS, 2)
        words = first.split()
        second = words[len(words) // 2:] if i % 2 else other.split()[len(other.split()) // 2:]
        yield " ".join(words[:len(words) // 2]), " ".join(second), i % 2


def train(attend, command, base, lines, out):
    pairs = base.parent / f"{out.name}.tsv"
    pairs.write_text("".join("\t".join(x) + "\n" for x in lines), "utf-8")
    subprocess.run([attend, "train", command, "-m", base, "-p", pairs, "-o", out, "--epochs", "2", "--batch", "8",
                    "--rate", "0.001", "--threads", "2"], check=True, stderr=subprocess.DEVNULL)


def run(lines, *command):
    done = subprocess.run(command, input="".join(lines), text=True, capture_output=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def difference(wanted, are):
    return max(float((wanted[name] - are[name]).abs().max()) for name in wanted)


def check_loading(cls, folder):
    """The class opens the folder without a tensor that it lacks or does not know."""
    _, info = cls.from_pretrained(folder, output_loading_info=True)
    wrong = {k: v for k, v in info.items() if v}
    if wrong:
        sys.exit(f"{folder}: {wrong}")


def vectors(attend, out, rows):
    check_loading(transformers.AutoModel, out)
    texts = [a for a, _, _ in rows]
    wanted = torch.tensor(SentenceTransformer(str(out), device="cpu").encode(texts, batch_size=1))
    run((x + "\n" for x in texts), attend, "embed", "-m", out, "--format", "npy", "-o", out / "vectors.npy", "-")
    return difference({"": wanted}, {"": torch.tensor(numpy.load(out / "vectors.npy"))})


def scores(attend, out, rows, labels):
    check_loading(transformers.AutoModelForSequenceClassification, out)
    model = CrossEncoder(str(out), device="cpu")
    wanted = torch.tensor(model.predict([(a, b) for a, b, _ in rows], batch_size=1))
    command = [attend, *(("classify", "--json") if labels else ("rerank",)), "-m", out, "-p", "-", "--format", "tsv"]
    lines = run((f"{a}\t{b}\n" for a, b, _ in rows), *command).splitlines()
    if not labels:
        return difference({"": wanted}, {"": torch.tensor([float(x) for x in lines])})
    classes = [{c["label"]: c["probability"] for c in json.loads(x)["classes"]} for x in lines]
    return difference(dict(zip(model.config.id2label.values(), wanted.softmax(-1).T)),
                      {name: torch.tensor([x[name] for x in classes]) for name in classes[0]})


def check(attend, family, root):
    rng = random.Random(family)
    base, out = pathlib.Path(root, "base"), [pathlib.Path(root, x) for x in ("vectors", "scores", "labels")]
    base.mkdir()
    tokens = (bert if family == "bert" else MAKE[family])(base, LONGEST)
    encoders.save(family, settings_of(family, tokens, LONGEST, rng), base, dtype=rng.choice([torch.float32, torch.bfloat16]))
    rows = list(rows_of(rng))
    train(attend, "embed", base, (x[:2] for x in rows), out[0])
    yield vectors(attend, out[0], rows)
    if family in TOKENIZERS:
        train(attend, "rerank", base, ((a, b, str(fits)) for a, b, fits in rows), out[1])
        yield scores(attend, out[1], rows, False)
        train(attend, "rerank", base, ((a, b, ("no", "yes")[fits]) for a, b, fits in rows), out[2])
        yield scores(attend, out[2], rows, True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--attend", default="build/attend")
    options.add_argument("families", nargs="*", default=list(MAKE))
    options = options.parse_args()
    print(f"{'family':12} of vectors  of scores  of probabilities")
    good = True
    for family in options.families:
        with tempfile.TemporaryDirectory() as root:
            errors = list(check(options.attend, family, root))
            good &= max(errors) < ALLOWED
            print(f"{family:12} {'  '.join(f'{e:10.1e}' for e in errors)}", flush=True)
    sys.exit(not good)


if __name__ == "__main__":
    main()
