#!/usr/bin/env python3
"""Writes token_embeddings.txt: the vectors of tokens that sentence-transformers makes in fp32 with a tiny BERT whose
weights follow from a formula. Of each text a line with the number of its tokens, then a line of 12 numbers a token.

    python3 make_token_embeddings.py

Made with sentence-transformers 6.2.0, transformers 5.23.0, torch 2.15.0 on a CPU. tests/fixtures/tiny_bert.h makes the
same model.
"""
import pathlib
import tempfile

from sentence_transformers import SentenceTransformer, models
from transformers import BertTokenizer

from make_tiny_bert import show, tiny

TEXTS = ["a b c", "", "wxyz Abc", "c d e f g h i j k l m n o p"]  # the last is too long
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [chr(c) for c in range(ord("a"), ord("z") + 1)] + [
    "##" + chr(c) for c in range(ord("a"), ord("i") + 1)]


def main():
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "vocab.txt").write_text("".join(token + "\n" for token in VOCABULARY))
        tiny("gelu").save_pretrained(folder)
        BertTokenizer(str(pathlib.Path(folder) / "vocab.txt"), do_lower_case=True).save_pretrained(folder)
        encoder = models.Transformer(folder, max_seq_length=12)
        model = SentenceTransformer(modules=[encoder, models.Pooling(12), models.Normalize()], device="cpu")
        for rows in model.encode(TEXTS, output_value="token_embeddings"):
            lines += [str(len(rows))] + show(rows)
    (pathlib.Path(__file__).parent / "token_embeddings.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
