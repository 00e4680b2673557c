#!/usr/bin/env python3
"""Writes marian.txt, the golden file of tests/text/marian.c, with the class MarianTokenizer of `transformers`.

    pip install transformers==5.* sentencepiece==0.2.* torch
    tests/golden/make_marian.py

The folder is made of unigram.spm, bpe.spm and a vocabulary of most of their pieces; tests/fixtures/marian_files.h makes the
same.
A row has a hash for ten lines of text_lines.py, some with special tokens and language codes: of the ids as source, of
the ids as target, and of the text of twenty ids by chance.
"""
import json
import pathlib
import shutil
import tempfile

import sentencepiece
from transformers import MarianTokenizer

from text_lines import HERE, N_LINES, Random, fnv, hash_ids, line

BETWEEN = ["</s>", "<pad>", " <unk> ", ">>de<<", "</s>>>fr<< ", "<pad></s>", ">>", "<<"]


def vocabulary(*models):
    """Special tokens, then the pieces of all but every seventh, each once, and <pad> at the end, as in OPUS-MT."""
    tokens = ["</s>", "<unk>", ">>de<<"]
    for model in models:
        tokens += [model.id_to_piece(i) for i in range(len(model)) if i % 7]
    return {t: i for i, t in enumerate(dict.fromkeys([*tokens, "<pad>"]))}


def text(number):
    random = Random(2**33 + number)
    first, second = (line(n).decode("utf-8", "replace") for n in (number, random.below(N_LINES)))
    kind = random.below(4)
    if kind == 0:
        return first
    if kind == 1:
        return ">>de<<" + first
    return first + BETWEEN[random.below(len(BETWEEN))] + second


def hash_line(tokenizer, number, h):
    t = text(number)
    h = hash_ids(tokenizer(t).input_ids, h)
    h = hash_ids(tokenizer(text_target=t).input_ids, h)
    random = Random(2**32 + number)
    ids = [random.below(tokenizer.vocab_size) for _ in range(20)]
    return fnv(tokenizer.decode(ids, skip_special_tokens=True, use_source_tokenizer=False).encode(), h)


def make_folder(folder):
    """The tokenizer's files."""
    models = []
    for name, to in ("unigram.spm", "source.spm"), ("bpe.spm", "target.spm"):
        shutil.copy(HERE / name, folder / to)
        models.append(sentencepiece.SentencePieceProcessor(model_file=str(folder / to)))
    vocab = vocabulary(*models)
    assert vocab["<pad>"] < len(vocab)
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "tokenizer_config.json").write_text("{}")
    return len(vocab)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        make_folder(folder)
        tokenizer = MarianTokenizer.from_pretrained(folder)
        rows = []
        for first in range(0, N_LINES, 10):
            h = fnv(b"")
            for number in range(first, first + 10):
                h = hash_line(tokenizer, number, h)
            rows.append(f"{h:08x}\n")
        (HERE / "marian.txt").write_text("".join(rows))


if __name__ == "__main__":
    main()
