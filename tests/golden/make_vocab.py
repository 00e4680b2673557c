#!/usr/bin/env python3
"""Writes vocab.txt, a golden file of tests/text/vocab.c, with the `sentencepiece` package: it reads what we learn.

    pip install sentencepiece==0.2.*
    tests/golden/make_vocab.py build/attend

The model is trained by `attend vocab` from ../../examples/facts.txt and snippets.txt, as tests/text/vocab.c does it. The
first row is the hash of the ids of all snippets with NFKC; each other row, without it, that of ten lines of
text_lines.py: their ids and the texts of these.
"""
import pathlib
import subprocess
import sys
import tempfile

import sentencepiece

from text_lines import HERE, N_LINES, SNIPPETS, fnv, hash_ids, line


def learn(*options):
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "model.spm")
        subprocess.run([sys.argv[1], "vocab", "--size", "1200", "--byte-fallback", "--symbols", "<sep>,日本", "--control",
                        "<pad>", *options, "-o", path, HERE / "../../examples/facts.txt", HERE / "snippets.txt"],
                       check=True)
        return sentencepiece.SentencePieceProcessor(model_file=path)


def hash_lines(model, lines):
    h = fnv(b"")
    for text in lines:
        ids = model.encode(text)
        h = fnv(model.decode(ids).encode(), hash_ids(ids, h))
    return h


rows = [hash_lines(learn(), SNIPPETS)]
model = learn("--normalization", "identity")
rows += [hash_lines(model, map(line, range(i, i + 10))) for i in range(0, N_LINES, 10)]
(HERE / "vocab.txt").write_text("".join(f"{h:08x}\n" for h in rows))
