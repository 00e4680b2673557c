#!/usr/bin/env python3
"""Writes minilm_sentences.txt (one a line) and minilm_embeddings.f32 (little-endian, [lines, 384]): what
sentence-transformers makes of them in fp32, each sentence alone.

    python3 make_minilm.py FOLDER_OF_ALL_MINILM_L6_V2

Made with sentence-transformers 6.2.0, transformers 5.23.0, torch 2.15.0 on a CPU.
"""
import pathlib
import sys

import numpy
from sentence_transformers import SentenceTransformer

SENTENCES = [
    "This is a test.",
    "A man is eating food.",
    "",
    "a",
    "   several   spaces\tand a tab  ",
    "Der Übermut tut selten gut, sagte Größe zu Maß.",
    "東京は日本の首都です。",
    "한국어 문장도 하나 있습니다.",
    "Pizza 🍕 and rockets 🚀🚀 for everyone 👨‍👩‍👧",
    "e\u0301 and é are the same after normalisation; Ａ is not A",
    "An unknown [MASK] and a [SEP] in the text, [UNK] too.",
    "Supercalifragilisticexpialidocious antidisestablishmentarianism",
    "x" * 120,
    "https://example.org/path?query=1&other=%20#fragment",
    "3.14159 2,71828 1e-9 0x7fff 100 % of $5",
    "Ελληνικά, кириллица, עברית, العربية, हिन्दी, ไทย",
    "zero\u200bwidth and soft\u00adhyphen and nbsp\u00a0here",
    "I really don't know what she'd've said, had they asked!",
    "word " * 300,
    "A sentence of exactly the kind that people search for: how do I convert a model to another format? " * 15,
]


def main():
    folder = pathlib.Path(__file__).parent
    model = SentenceTransformer(sys.argv[1], device="cpu")
    rows = [model.encode([s], convert_to_numpy=True)[0] for s in SENTENCES]
    (folder / "minilm_sentences.txt").write_text("".join(s + "\n" for s in SENTENCES), encoding="utf-8")
    numpy.stack(rows).astype("<f4").tofile(folder / "minilm_embeddings.f32")


main()
