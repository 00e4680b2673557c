#!/usr/bin/env python3
"""Compares attend with the package wordllama, whose weights are those of a published model of static embeddings: makes a
folder of them, as docs/SENTENCES.md does, and embeds the lines of text_lines.py.

    python3 check_wordllama.py [ATTEND]

Ids are equal, and no number of a vector is further from that in float64 than 8 times the largest error of the package.

Made with wordllama 0.4.0 on a CPU.
"""
import json
import pathlib
import shutil
import tempfile

import numpy
import wordllama
from safetensors.numpy import load_file

from check_static import ALLOWED, embed, error, run
from text_lines import line

HERE = pathlib.Path(wordllama.__file__).parent
WEIGHTS, TOKENIZER = HERE / "weights/l2_supercat_256.safetensors", HERE / "tokenizers/l2_supercat_tokenizer_config.json"
LINES = 2000

lines = [line(i).decode("utf-8", "replace") for i in range(LINES)]
lines = [t for t in lines if not set(t) & set("\r\n\0")]
# It looks for its own tokenizer only in the folder of downloads.
package = wordllama.WordLlama.load(cache_dir=HERE, dim=256, disable_download=True)
ids = [[i for i, used in zip(e.ids, e.attention_mask) if used] for e in package.tokenize(lines)]
table = load_file(WEIGHTS)["embedding.weight"].astype("float64")
exact = numpy.stack([table[i].mean(0) if i else numpy.zeros(table.shape[1]) for i in ids])
with tempfile.TemporaryDirectory() as folder:
    shutil.copy(WEIGHTS, folder + "/model.safetensors")
    shutil.copy(TOKENIZER, folder + "/tokenizer.json")
    pathlib.Path(folder, "modules.json").write_text(json.dumps([{"path": "", "type": "sentence_transformers.models.StaticEmbedding"}]))
    y = embed(folder, lines)
    ours = [json.loads(x) for x in run("tokenize", "-m", folder, "--json", "--no-special", lines=lines).splitlines()]
assert ours == ids, next((t, a, b) for t, a, b in zip(lines, ours, ids) if a != b)
found, theirs = error(y, exact).max(), error(package.embed(lines), exact).max()
assert found <= ALLOWED * theirs, (found, theirs)
print(f"{len(lines)} lines, {sum(map(len, ids))} tokens: error {found:.1e}, of the package {theirs:.1e}")
