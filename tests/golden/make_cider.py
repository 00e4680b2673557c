#!/usr/bin/env python3
"""Writes cider.jsonl, the golden file of tests/metric/cider.c, with pycocoevalcap's class Cider: texts, the references of
each, its scores and their mean.

    pip install pycocoevalcap==1.2
    tests/golden/make_cider.py
"""
import json
import pathlib

from pycocoevalcap.cider.cider import Cider
from text_lines import Random

HERE = pathlib.Path(__file__).parent

PLAIN = [
    ("a black dog runs through the grass",
     ["a black dog is running in the grass", "a dog runs through tall grass", "a black dog running outside",
      "the dog is running through a field of grass", "black dog in the grass"]),
    ("two children play in the water",
     ["two kids are playing in the water", "children splash in a pool", "a boy and a girl play in the water",
      "two children playing in water", "two small children in the ocean"]),
    ("a man in a blue shirt is standing on a",
     ["a man climbs a rock wall", "a man in a blue shirt is climbing", "a climber on a cliff",
      "a man is standing on a rock", "someone climbing up a mountain"]),
    ("a girl in a pink dress climbs the stairs",
     ["a child in a pink dress is climbing up a set of stairs in an entry way", "a girl going into a wooden building",
      "a little girl climbing into a wooden playhouse", "a little girl climbing the stairs to her playhouse",
      "a little girl in a pink dress going into a wooden cabin"]),
    ("a brown dog jumps over a fence",
     ["a dog leaps over a hurdle", "the brown dog jumps over the fence", "a dog in the air over a bar",
      "a dog jumping", "an agility dog jumps a fence"]),
    ("people sit at a table",
     ["a group of people sit at a table outside", "four people eating dinner", "people are sitting around a table",
      "friends have a meal at a restaurant", "a family at a table"]),
]
CASES = {
    "plain": PLAIN,
    "same": [(references[i % 5], references) for i, (_, references) in enumerate(PLAIN)],
    "one reference": [(text, references[:1]) for text, references in PLAIN],
    "other numbers of references": [(text, references[:1 + i % 5]) for i, (text, references) in enumerate(PLAIN)],
    "empty": [("", ["a dog", "a cat"]), ("a dog", ["", ""]), ("", [""]), ("a cat sits", ["a cat sits", ""])],
    "short": [("dog", ["dog"]), ("a dog", ["a dog", "dog"]), ("a dog runs", ["a dog runs", "a dog"]), ("cat", ["dog"])],
    "twice": [("a a a a a a", ["a b a b a", "a"]), ("the the dog dog the the dog", ["the dog the dog", "the the the"]),
              ("dog", ["dog dog dog dog"]), ("x y x y x y x y x y x y", ["x y", "x y x y x y x y x y x y x y x y x y"])],
    "single image": PLAIN[:1],
    "in all images": [("a dog", ["a dog", "a dog"]), ("a dog", ["a dog"]), ("a dog runs", ["a dog sits"])],
    "nothing shared": [("abc def", ["ghi jkl"]), ("mno pqr stu", ["vwx yz"])],
    "spaces": [("  a\tdog\u00a0runs \u3000", ["a dog runs", "a  dog"]), ("a\u200bdog", ["a dog", "a\u200bdog"]), ("b", ["c"])],
    "other letters": [("Ein Hund läuft", ["ein hund läuft", "Ein Hund läuft schnell"]), ("犬 が 走る", ["犬 が 走る 。"]),
                      ("a dog .", ["a dog .", "A dog"])],
}


def generated():
    """As many captions as show the order of sums: of a small vocabulary, some of whose words are others in the text."""
    random, words = Random(7), "a the dog man woman girl in on red blue runs sits water grass with and".split()
    for _ in range(40):
        references = [[words[random.below(len(words))] for _ in range(2 + random.below(14))] for _ in range(5)]
        text = [w if random.below(4) else words[random.below(len(words))] for w in references[random.below(5)]]
        yield " ".join(text), [" ".join(r) for r in references]


CASES["generated"] = list(generated())
with open(HERE / "cider.jsonl", "w", encoding="utf-8") as f:
    for name, case in CASES.items():
        mean, scores = Cider().compute_score({i: c[1] for i, c in enumerate(case)}, {i: [c[0]] for i, c in enumerate(case)})
        row = dict(name=name, texts=[c[0] for c in case], references=[c[1] for c in case],
                   scores=[float(s) for s in scores], mean=float(mean))
        f.write(json.dumps(row, ensure_ascii=False) + "\n")
