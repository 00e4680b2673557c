#!/usr/bin/env python3
"""Writes static/ for tests/sentence/static.c: folders of static embeddings by model2vec and sentence-transformers, and
static/expected.jsonl: of each folder, what the package makes of texts in float64, with the ids of their tokens.

    python3 make_static.py

Made with model2vec 0.10.0, sentence-transformers 6.2.0, tokenizers 0.23.3 on a CPU.
"""
import json
import pathlib
import shutil

from static_folders import Model2vec, Static, variant

TO = pathlib.Path(__file__).parent / "static"
FOLDERS = {"model2vec_f32": (Model2vec, 0), "model2vec_f16": (Model2vec, 1), "model2vec_int8": (Model2vec, 5),
           "model2vec_unigram": (Model2vec, 3), "model2vec_words": (Model2vec, 4), "static_f32": (Static, 30),
           "static_f16": (Static, 1), "static_bf16": (Static, 8)}

shutil.rmtree(TO, ignore_errors=True)
TO.mkdir()
lines = []
for name, (family, i) in FOLDERS.items():
    v, texts = variant(family, i, small=True)
    texts = [t for t in texts if len(t) < 300]
    folder = TO / name
    folder.mkdir()
    v.write(folder)
    for junk in folder.glob("*.md"):
        junk.unlink()
    vectors = v.encode(folder, texts, "float64")
    lines.append(json.dumps({"folder": name, "texts": texts, "ids": v.ids(folder, texts),
                             "vectors": [[float(f"{x:.9g}") for x in row] for row in vectors]}, ensure_ascii=False))
    print(name, v.kind, v.dtype, v.dim, {k: x for k, x in vars(v).items() if isinstance(x, bool)}, getattr(v, "config", ""))
(TO / "expected.jsonl").write_text("\n".join(lines) + "\n")
