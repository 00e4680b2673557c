#!/usr/bin/env python3
"""Translation with a Transformer of 6 + 6 layers, d 512, a vocabulary of 32,000: attend and CTranslate2, in fp32, turn
and turn about.

The model is a MarianMTModel with random weights; both sides open the same folder. Texts are 20 tokens by chance, and
translations get exactly 30: one text, 32 texts, 32 texts with a beam of 4. attend is timed from text to text,
CTranslate2 from tokens to tokens, with each library for matrix products that it can be told to take, of which the best
counts. Scores are asked of neither. Greedy translations of both are compared. Each side runs as a process of its own
each round.
"""
import argparse
import json
import os
import random
import sys
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read by imports below

from common import BUILD, PAUSE, run_json, table
from marian import marian_folder

LAYERS, HIDDEN, VOCABULARY = 6, 512, 32000
TEXTS, SOURCE, TARGET = 32, 20, 30
CASES = [(1, 1), (TEXTS, 1), (TEXTS, 4)]  # texts at a time, beam
PASSES = 2  # of each case in each round, of which the best counts
BACKENDS = {"oneDNN": {"CT2_USE_MKL": "0"}, "MKL": {"CT2_USE_MKL": "1"}}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--int8", action="store_true", help="both with int8 weights")
    parser.add_argument("--json", action="store_true", help="one object")
    parser.add_argument("--backend", nargs=4, metavar=("FOLDER", "FILE", "OUT", "TYPE"), help="one round of CTranslate2")
    return parser.parse_args()


def converted(folder):
    """The folder as CTranslate2 has it; made once."""
    out = folder.with_name(folder.name + "-ctranslate2")
    if not out.exists():
        from ctranslate2.converters import TransformersConverter
        TransformersConverter(str(folder)).convert(str(out.with_suffix(".part")), force=True)
        out.with_suffix(".part").rename(out)
    return out


# ---- CTranslate2: one process, its backend in the environment

def ctranslate2_round(folder, texts_path, out, kind):
    import ctranslate2
    translator = ctranslate2.Translator(folder, device="cpu", compute_type=kind, intra_threads=2, inter_threads=1)
    with open(texts_path, encoding="utf-8") as f:
        texts = [[f"\u2581{word}" for word in line.split()] + ["</s>"] for line in f]
    for batch, beam in CASES:
        best = float("inf")
        for _ in range(PASSES):
            start = time.perf_counter()
            found = translator.translate_batch(texts[:batch], beam_size=beam, min_decoding_length=TARGET,
                                               max_decoding_length=TARGET)
            best = min(best, time.perf_counter() - start)
        if (batch, beam) == (TEXTS, 1):
            with open(out, "w", encoding="utf-8") as f:
                f.writelines("".join(t.hypotheses[0]).replace("\u2581", " ").strip() + "\n" for t in found)
        print(json.dumps({"batch": batch, "beam": beam, "tokens_per_second": batch * TARGET / best,
                          "version": ctranslate2.__version__}))


# ---- all sides

def keep_best(best, side, found):
    for f in found:
        case = f["batch"], f["beam"]
        before = best.get(case, {}).get(side, 0)
        best.setdefault(case, {})[side] = max(before, f["tokens_per_second"])


def measure(folder, rounds, scratch, int8):
    texts, ours, theirs = (os.path.join(scratch, name) for name in ("texts", "ours", "theirs"))
    words = random.Random(0)
    with open(texts, "w", encoding="utf-8") as f:
        for _ in range(TEXTS):
            f.write(" ".join(f"t{words.randrange(2, VOCABULARY - 1)}" for _ in range(SOURCE)) + "\n")
    other = converted(folder)
    best = {}
    for _ in range(rounds):
        time.sleep(PAUSE)
        keep_best(best, "attend", run_json(BUILD / "bench/bench_translate", folder, texts, 2, ours,
                                           "int8" if int8 else "stored"))
        for name, environment in BACKENDS.items():
            time.sleep(PAUSE)
            os.environ.update(environment)
            found = run_json(sys.executable, os.path.abspath(__file__), "--backend", other, texts, theirs,
                             "int8" if int8 else "float32")
            keep_best(best, name, found)
    with open(ours, encoding="utf-8") as a, open(theirs, encoding="utf-8") as b:
        same = sum(x == y for x, y in zip(a, b))
    return best, same, found[0]["version"]


def main():
    args = parse()
    if args.backend:
        ctranslate2_round(*args.backend)
        return
    with tempfile.TemporaryDirectory() as scratch:
        best, same, version = measure(marian_folder(LAYERS, HIDDEN, VOCABULARY), args.rounds, scratch,
                                      args.int8)
    cases = []
    for (batch, beam), sides in best.items():
        backend = max(BACKENDS, key=lambda name: sides[name])
        cases.append({"batch": batch, "beam": beam, "backend": backend, "ratio": sides["attend"] / sides[backend],
                      "tokens_per_second": sides})
    if args.json:
        print(json.dumps({"rounds": args.rounds, "version": version, "texts": TEXTS, "same": same, "cases": cases}))
        return
    print(f"{LAYERS} + {LAYERS} layers, d {HIDDEN}, {'int8' if args.int8 else 'fp32'}, 2 threads, best of {args.rounds} rounds; CTranslate2 "
          f"{version}; {same} of {TEXTS} greedy translations are the same")
    print(table(["tokens/s", "attend", *BACKENDS, "attend is"], [
        [f"batch of {c['batch']}, beam {c['beam']}", *(f"{rate:.0f}" for rate in c["tokens_per_second"].values()),
         f"{c['ratio']:.2f} x"] for c in cases]))


if __name__ == "__main__":
    main()
