#!/usr/bin/env python3
"""Writes fairseq.txt: of XLM-R's and CamemBERT's tokenizer in the older layout, unigram.spm as sentencepiece.bpe.model,
the ids of some texts and a pair, and the hash of the ids and offsets of every 20th line of text_lines.py.

    tests/golden/make_fairseq.py

Made with transformers 5.23.0, tokenizers 0.23, sentencepiece 0.2, protobuf 7.36; tests/text/fairseq.c reads it.
"""
import json
import pathlib
import shutil
import tempfile

from transformers import AutoTokenizer

from make_pipelines import offsets_in, positions
from text_lines import HERE, N_LINES, hash_ids, line

TEXTS = ["The sky is blue.", " two  spaces <mask> after</s>one ", "ａ½"]


def main():
    out = []
    for name in ("XLMRobertaTokenizer", "CamembertTokenizer"):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(HERE / "unigram.spm", f"{folder}/sentencepiece.bpe.model")
            pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
            t = AutoTokenizer.from_pretrained(folder)
        out += [f"class {name}", f"size {len(t)}"]
        out += [line_of(text, t(text)["input_ids"]) for text in TEXTS]
        out.append(line_of(" | ".join(TEXTS[:2]), t(*TEXTS[:2])["input_ids"]))
        h = 2166136261
        for i in range(0, N_LINES, 20):
            data = line(i)
            text, spans = positions(data)
            y = t(text, return_offsets_mapping=True)
            h = hash_ids(y["input_ids"], h)
            for begin, end in y["offset_mapping"]:
                h = hash_ids(offsets_in(spans, data, begin, end), h)
        out.append(f"hash {h}")
    (HERE / "fairseq.txt").write_text("\n".join(out) + "\n", "utf-8")


def line_of(text, ids):
    return f"text {text}\nids {' '.join(map(str, ids))}"


if __name__ == "__main__":
    main()
