#!/usr/bin/env python3
"""Writes qwen3_embedding/ for tests/sentence/language.c: a folder like Qwen3-Embedding by sentence-transformers, and
qwen3_embedding/expected.json, what it makes of texts in float64, with the prompt "query" and without, with the ids of
their tokens.

    python3 make_qwen3_embedding.py

Made with transformers 5.23.0, sentence-transformers 6.2.0, torch 2.15.0 on a CPU.
"""
import json
import pathlib
import shutil

from language_folders import QUERY, Qwen3, variant

TO = pathlib.Path(__file__).parent / "qwen3_embedding"
shutil.rmtree(TO, ignore_errors=True)
TO.mkdir()
v, texts = variant(Qwen3, 3, small=True)
texts = [t for t in texts if len(t) < 300]
v.write(TO)
plain, query = v.encode(TO, texts, "float64"), v.encode(TO, texts, "float64", prompt_name="query")
for junk in list(TO.glob("*.md")) + list(TO.glob(".*")):
    junk.unlink()


def rows(x):
    return [[float(f"{y:.9g}") for y in row] for row in x]


(TO / "expected.json").write_text(json.dumps({
    "texts": texts, "ids": v.ids(TO, texts), "query_ids": v.ids(TO, [QUERY + t for t in texts]), "vectors": rows(plain),
    "query": rows(query)}, ensure_ascii=False) + "\n")
print({k: x for k, x in vars(v).items() if isinstance(x, (bool, str, int))})
