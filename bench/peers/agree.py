#!/usr/bin/env python3
"""Does a translator's folder say the same here, in transformers and in CTranslate2? The likeliest token each time.

usage: bench/peers/agree.py FILE [FOLDER]     FILE: a text a line; FOLDER: models/tatoeba-de-en
"""
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read by the imports below

from common import BUILD

import ctranslate2
import torch
from ctranslate2.converters import TransformersConverter
from transformers import MarianMTModel, MarianTokenizer


def main():
    texts = pathlib.Path(sys.argv[1]).read_text().splitlines()
    folder = sys.argv[2] if len(sys.argv) > 2 else str(BUILD.parent / "models" / "tatoeba-de-en")
    ours = subprocess.run([BUILD / "attend", "translate", "-m", folder, "--beam", "1"], input="\n".join(texts),
                          capture_output=True, text=True, check=True).stdout.splitlines()
    tokenizer = MarianTokenizer.from_pretrained(folder)
    model = MarianMTModel.from_pretrained(folder, dtype=torch.float32)
    with tempfile.TemporaryDirectory() as scratch:
        TransformersConverter(folder, load_as_float16=False).convert(scratch + "/ct2", quantization="float32")
        translator = ctranslate2.Translator(scratch + "/ct2", compute_type="float32")
        pieces = [tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids) for text in texts]
        found = translator.translate_batch(pieces, beam_size=1, max_decoding_length=256)
    same = {"transformers": 0, "CTranslate2": 0}
    for text, line, there in zip(texts, ours, found):
        with torch.no_grad():
            ids = model.generate(**tokenizer([text], return_tensors="pt"), num_beams=1, max_new_tokens=256, max_length=None)[0]
        others = {"transformers": tokenizer.decode(ids, skip_special_tokens=True),
                  "CTranslate2": tokenizer.decode(tokenizer.convert_tokens_to_ids(there.hypotheses[0]),
                                                  skip_special_tokens=True)}
        for name, other in others.items():
            same[name] += other == line
            if other != line:
                print(f"{text}\n  attend        {line}\n  {name:13} {other}")
    print(", ".join(f"{name}: {n} of {len(texts)} the same" for name, n in same.items()))


if __name__ == "__main__":
    main()
