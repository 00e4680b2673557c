#!/usr/bin/env python3
"""Writes golden files of offsets, with the packages `sentencepiece`, `tokenizers` and `transformers`.

    pip install sentencepiece==0.2.* protobuf tokenizers==0.23.* transformers==5.*
    tests/golden/make_offsets.py FOLDER_OF_all-MiniLM-L6-v2

    sentencepiece_offsets.txt      for tests/text/sentencepiece_golden.c: for each model, and 100 lines of text_lines.py
                                   each, the hash of ids and offsets in bytes; then the same of every 50th line for each
                                   setting in sentencepiece.txt
    pipeline/minilm.hashes         for tests/text/pipeline_golden.c: as those of make_pipelines.py, of every fifth line
    pipeline/minilm_clean.hashes   of every 50th line, with clean_up_tokenization_spaces
"""
import json
import pathlib
import sys

import sentencepiece
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from make_pipelines import TO, hashes
from text_lines import HERE, N_LINES, hash_ids, line


def hash_pieces(model, number):
    pieces = model.encode(line(number), return_type="proto").pieces
    return hash_ids((x for p in pieces for x in (p.begin, p.end)), hash_ids(p.id for p in pieces))


def hash_lines(model, numbers):
    return f"{hash_ids(hash_pieces(model, i) for i in numbers):08x}\n"


files = {name: (HERE / f"{name}.spm").read_bytes() for name in ("unigram", "bpe")}
with open(HERE / "sentencepiece_offsets.txt", "w") as rows:
    for data in files.values():
        model = sentencepiece.SentencePieceProcessor(model_proto=data)
        rows.writelines(hash_lines(model, range(i, i + 100)) for i in range(0, N_LINES, 100))
    for setting in (HERE / "sentencepiece.txt").read_text().splitlines():
        name, tail, _ = setting.split()
        model = sentencepiece.SentencePieceProcessor(model_proto=files[name] + bytes.fromhex(tail))
        rows.write(hash_lines(model, range(0, N_LINES, 50)))

model = json.loads((pathlib.Path(sys.argv[1]) / "tokenizer.json").read_text("utf-8"))
model["truncation"] = model["padding"] = None
text = json.dumps(model)
(TO / "minilm.hashes").write_bytes(hashes(Tokenizer.from_str(text), 5))


class Clean:
    """The text of `transformers`, whose class cleans up what the tokenizer decodes."""

    def __init__(self):
        self.tokenizer = Tokenizer.from_str(text)
        self.whole = AutoTokenizer.from_pretrained(sys.argv[1], clean_up_tokenization_spaces=True)
        self.encode, self.get_vocab = self.tokenizer.encode, self.tokenizer.get_vocab

    def decode(self, ids):
        return self.whole.decode(ids, skip_special_tokens=True)


(TO / "minilm_clean.hashes").write_bytes(hashes(Clean(), 50))
