#!/usr/bin/env python3
"""Writes the golden files of tests/text/tokenizer_golden.c and tests/text/unicode.c with the `tokenizers` package.

    pip install tokenizers==0.23.*
    tests/golden/make_tokens.py FOLDER_OF_all-MiniLM-L6-v2

All hashes are FNV-1a, 32 bits.
    characters.txt  of the words of each code point between two letters, one hash for 256 code points
    words.txt       of the words of the 10,000 lines below, one hash for 100 lines
    tokens.txt      of the token ids of each of these lines
    settings.txt    of the ids of all lines, for each setting of the normalizer

The lines come from a generator that tests/fixtures/text_lines.h has as well, so they are not committed.
"""
import itertools
import json
import pathlib
import sys

from tokenizers import Tokenizer, normalizers, pre_tokenizers

from text_lines import HERE, N_LINES, fnv, hash_ids, line


def settings(clean, cjk, strip, lower):
    return normalizers.BertNormalizer(
        clean_text=clean, handle_chinese_chars=cjk, strip_accents=strip, lowercase=lower)


split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str


def words(normalizer, text):
    return "".join(word + "\n" for word, _ in split(normalizer.normalize_str(text))).encode()


def write(name, rows):
    (HERE / name).write_text("".join(row + "\n" for row in rows))


THREE = [settings(True, True, True, True), settings(False, False, False, True), settings(False, False, True, False)]
blocks = []
for block in range(0, 0x110000, 256):
    h = 2166136261
    for c in range(block, block + 256):
        if not 0xD800 <= c < 0xE000:
            for s in THREE:
                h = fnv(words(s, f"a{chr(c)}b"), h)
    blocks.append(f"{h:08x}")
write("characters.txt", blocks)

lines = [line(i).decode("utf-8", "replace") for i in range(N_LINES)]
write("words.txt", [f"{fnv(b''.join(words(THREE[0], t) for t in lines[i:i + 100])):08x}" for i in range(0, N_LINES, 100)])

model = json.loads((pathlib.Path(sys.argv[1]) / "tokenizer.json").read_text("utf-8"))
model["truncation"] = model["padding"] = None


def encode_lines(tokenizer):
    return [hash_ids(tokenizer.encode(t).ids) for t in lines]


tokens = encode_lines(Tokenizer.from_str(json.dumps(model)))
write("tokens.txt", [f"{h:08x}" for h in tokens])

rows = []
for clean, cjk, strip, lower in itertools.product([True, False], [True, False], [True, False, None], [True, False]):
    model["normalizer"].update(clean_text=clean, handle_chinese_chars=cjk, strip_accents=strip, lowercase=lower)
    hashes = encode_lines(Tokenizer.from_str(json.dumps(model)))
    switches = " ".join({True: "true", False: "false", None: "null"}[v] for v in (clean, cjk, strip, lower))
    rows.append(f"{switches} {hash_ids(hashes):08x}")
write("settings.txt", rows)
