#!/usr/bin/env python3
"""Writes the folder tiny_sentence: the tiny BERT of make_tiny_bert.py with a vocabulary of letters, as a sentence model.

    python3 make_tiny_sentence.py

Made with transformers 5.23.0, torch 2.15.0.
"""
import json
import pathlib

from make_tiny_bert import tiny

FOLDER = pathlib.Path(__file__).parent / "tiny_sentence"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + c for c in LETTERS[:9])]

tiny("gelu").save_pretrained(FOLDER)
(FOLDER / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
(FOLDER / "tokenizer_config.json").write_text(
    json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 16}) + "\n")
