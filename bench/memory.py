#!/usr/bin/env python3
"""How much memory texts of any size take: `attend vocab` and `attend train translate` on 100 MB and on 1 GB.

    bench/memory.py [--attend build/attend] [--small MB] [--large MB] [--words N] [--folder FOLDER]

Two files of made-up sentences, each half of the size; their N different words are all in the first of 10 MB already,
unless --growing: then each further 10 MB has N/20 new ones. One JSON line for each command: the most memory that it had
(resident set), for both sizes, and by how many bytes a line the second exceeds the first."""
import argparse
import concurrent.futures
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time

PART = 10_000_000  # bytes of a file that are made at a time


def word(n, side):
    consonants, vowels = "bcdfghklmnprstvwz", "aeiou" if side else "äeiöu"
    text = ""
    while n or not text:
        n, c = divmod(n, len(consonants))
        n, v = divmod(n, len(vowels))
        text += consonants[c] + vowels[v]
    return text


def write(path, side, size, first, more):
    """Sentences of 2 to 29 words, the n-th word 1/n as often as the first (Zipf); returns the number of lines, which
    is the same for both sides."""
    rng, lines, words, part = random.Random(1), 0, [], b""
    with open(path, "wb") as f:
        for number in range(max(1, size // PART)):
            if number == 0 or more:
                words += [word(n, side) for n in range(len(words), len(words) + (first if number == 0 else more))]
                weights = list(itertools.accumulate(1 / (n + 10) for n in range(len(words))))
                text = []
                for _ in range(min(size, PART) // 75):
                    text.append(" ".join(rng.choices(words, cum_weights=weights, k=rng.randint(2, 29))))
                fresh = words[-more:] if number else words
                text.append(" ".join(fresh[:20]))
                text += [" ".join(fresh[i : i + 20]) for i in range(20, len(fresh), 20)]
                part = ("\n".join(text) + "\n").encode()
            f.write(part)
            lines += len(text)
    return lines


def write_apart(*arguments):
    """The same in a process of its own: what a process had as its most counts for those that it starts."""
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        return pool.submit(write, *arguments).result()


def peak(command):
    """The most memory that a command had, in bytes, and its seconds."""
    start = time.monotonic()
    child = subprocess.Popen(command, stderr=subprocess.PIPE)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(said.decode())
    return usage.ru_maxrss * 1024, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attend", default="build/attend")
    parser.add_argument("--small", type=float, default=100, help="MB of both files")
    parser.add_argument("--large", type=float, default=1000, help="MB of both files")
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--growing", action="store_true")
    parser.add_argument("--folder", help="where files are put, for a while")
    a = parser.parse_args()
    measured = {}
    for size in (a.small, a.large):
        with tempfile.TemporaryDirectory(dir=a.folder) as folder:
            source, target, model = (os.path.join(folder, name) for name in ("source", "target", "model"))
            lines = 0
            for side, path in enumerate((source, target)):
                lines += write_apart(path, side, int(size * 5e5), a.words, a.words // 20 if a.growing else 0)
            size = os.path.getsize(source) + os.path.getsize(target)
            learn = [a.attend, "train", "translate", "--src", source, "--tgt", target, "-p", "tiny", "--steps", "2",
                     "--batch-tokens", "1024", "-o", model]
            for name, command in (("vocab", [a.attend, "vocab", "-o", model + ".spm", source, target]),
                                  ("train translate", learn)):
                measured.setdefault(name, []).append((size, lines, *peak(command)))
    for name, ((size, lines, most, _), (size2, lines2, most2, seconds)) in measured.items():
        print(json.dumps({"command": name, "mb": [round(size / 1e6, 1), round(size2 / 1e6, 1)],
                          "lines": [lines, lines2], "peak_mb": [round(most / 1e6, 1), round(most2 / 1e6, 1)],
                          "bytes_a_line": round((most2 - most) / (lines2 - lines), 2), "seconds": round(seconds, 1)}))


if __name__ == "__main__":
    main()
