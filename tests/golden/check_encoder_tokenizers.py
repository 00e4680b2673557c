#!/usr/bin/env python3
"""Compares the tokenizers of text encoders with AutoTokenizer of `transformers`: ids and offsets of the 10,000 lines of
text_lines.py, and of the lines of files.

    tests/golden/check_encoder_tokenizers.py [--tool build/attend] [--only PART_OF_NAME] [FILE ...]

The tokenizers learn from snippets.txt, examples/facts.txt and the files. Run with transformers 5.23.0, tokenizers 0.23,
sentencepiece 0.2, protobuf 7.36.
"""
import argparse
import io
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import modern_encoders as modern
import sentencepiece
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from text_lines import HERE, N_LINES, SNIPPETS, line


def learn(texts):
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=written, vocab_size=4000, character_coverage=0.9995,
        model_type="unigram", normalization_rule_name="nmt_nfkc", minloglevel=2, hard_vocab_limit=False)
    return written.getvalue()


def config(folder, **settings):
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def sentencepiece_file(name, texts, **more):
    def make(folder):
        (folder / "sentencepiece.bpe.model").write_bytes(learn(texts))
        config(folder, tokenizer_class=name, **more)
    return make


def saved(make):
    """The folder that the class writes of what `make` has written"""
    def write(folder):
        with tempfile.TemporaryDirectory() as other:
            make(pathlib.Path(other))
            transformers.AutoTokenizer.from_pretrained(other).save_pretrained(folder)
    return write


def as_converted(texts, name):
    """tokenizer.json with the steps that versions 4 of transformers converted to"""
    def make(folder):
        saved(sentencepiece_file("XLMRobertaTokenizer", texts))(folder)
        path = folder / "tokenizer.json"
        all = json.loads(path.read_text("utf-8"))
        all["normalizer"] = {"type": "Sequence", "normalizers": [
            all["normalizer"], {"type": "Strip", "strip_left": False, "strip_right": True},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}]}
        all["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
        path.write_text(json.dumps(all, ensure_ascii=False), "utf-8")
        config(folder, tokenizer_class=name, mask_token={
            "content": "<mask>", "lstrip": True, "normalized": False, "rstrip": False, "single_word": False,
            "__type": "AddedToken"})
    return make


def roberta(texts):
    def make(folder):
        t = Tokenizer(models.BPE())
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=3000, show_progress=False,
                                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        model = json.loads(t.to_str())["model"]
        names = ["<s>", "<pad>", "</s>", "<unk>", *sorted(model["vocab"], key=model["vocab"].get), "<mask>"]
        (folder / "vocab.json").write_text(json.dumps({n: i for i, n in enumerate(names)}), "utf-8")
        (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *(" ".join(m) for m in model["merges"])]) + "\n", "utf-8")
        config(folder, tokenizer_class="RobertaTokenizer")
    return make


def wordpiece(texts, name, special):
    def make(folder):
        t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        t.normalizer = normalizers.BertNormalizer()
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        t.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=3000, show_progress=False, special_tokens=special))
        names = sorted(t.get_vocab().items(), key=lambda x: x[1])
        (folder / "vocab.txt").write_text("".join(n + "\n" for n, _ in names), "utf-8")
        config(folder, tokenizer_class=name)
    return make


def pieces(texts):
    """Those that SentencePiece learns, with their scores"""
    t = sentencepiece.SentencePieceProcessor(model_proto=learn(texts))
    return [(t.id_to_piece(i), t.get_score(i)) for i in range(t.get_piece_size()) if not t.is_control(i) and not t.is_unknown(i)]


def rotary(make, learned):
    """A tokenizer of encoders with rotary positions, without a limit"""
    return lambda folder: make(learned, folder, 1 << 20)


BERT, MPNET = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>"]


def folders(texts):
    xlm, camembert = (sentencepiece_file(n + "Tokenizer", texts) for n in ("XLMRoberta", "Camembert"))
    mpnet = wordpiece(texts, "MPNetTokenizer", MPNET)
    return {"xlm-roberta": saved(xlm), "xlm-roberta, .model": xlm,
            "xlm-roberta, converted": as_converted(texts, "XLMRobertaTokenizerFast"),
            "xlm-roberta, its steps": as_converted(texts, "PreTrainedTokenizerFast"),
            "camembert": saved(camembert), "camembert, .model": camembert,
            "roberta": saved(roberta(texts)), "roberta, merges.txt": roberta(texts),
            "mpnet": saved(mpnet), "mpnet, vocab.txt": mpnet,
            "distilbert, vocab.txt": wordpiece(texts, "DistilBertTokenizer", BERT),
            "modernbert": rotary(modern.byte_level, texts), "modernbert, Japanese": rotary(modern.japanese, pieces(texts)),
            "gemma": rotary(modern.gemma, pieces(texts)),
            "nomic_bert": rotary(modern.wordpiece, list(dict.fromkeys(p.strip("▁") or "▁" for p, _ in pieces(texts))))}


def in_bytes(text, offsets):
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [[at[a], at[b]] for a, b in offsets]


def lines(files):
    """Those of text_lines.py, with special tokens in some, then up to as many of each file"""
    rng = random.Random(1)
    clean = str.maketrans("\n\r\0", "   ")
    for i in range(N_LINES):
        text = line(i).decode("utf-8", "replace").translate(clean)
        yield text + rng.choice([" <mask> x", "<s>", " </s>b", "[MASK]", "  ", "▁"]) if i % 10 == 0 else text
    for file in files:
        all = [t for t in pathlib.Path(file).read_text("utf-8", "replace").split("\n") if t.strip()]
        yield from (t.translate(clean) for t in rng.sample(all, min(len(all), N_LINES)))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--tool", default="build/attend")
    options.add_argument("--only", default="")
    options.add_argument("files", nargs="*")
    options = options.parse_args()
    texts = [t.decode("utf-8", "replace") for t in SNIPPETS * 3]
    texts += (HERE / "../../examples/facts.txt").read_text("utf-8").splitlines() * 2
    for file in options.files:
        texts += random.Random(2).sample(pathlib.Path(file).read_text("utf-8", "replace").split("\n"), 2000)
    texts = [t.replace("\0", " ") for t in texts if t.strip() and len(t.encode()) < 4000]
    all, good = list(lines(options.files)), True
    for name, make in folders(texts).items():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as path:
            make(pathlib.Path(path))
            theirs = transformers.AutoTokenizer.from_pretrained(path)
            done = subprocess.run([options.tool, "tokenize", "-m", path, "--offsets"], input="\n".join(all) + "\n", text=True,
                                  stdout=subprocess.PIPE, encoding="utf-8")
            ours = [json.loads(x) for x in done.stdout.splitlines()]
            same = [0, 0]
            first = None
            for text, is_ in zip(all, ours):
                y = theirs(text, return_offsets_mapping=True)
                special = [i for i, x in enumerate(is_["special"]) if x]
                wanted = in_bytes(text, y["offset_mapping"])
                ids = is_["ids"] == y["input_ids"]
                offsets = ids and all_same(is_["offsets"], wanted, special)
                same[0] += ids
                same[1] += offsets
                if not (ids and offsets) and first is None:
                    first = (text, is_["ids"], y["input_ids"], is_["offsets"], wanted)
            good &= len(ours) == len(all) and same == [len(all)] * 2
            print(f"{name:24} {len(all)} lines, {same[0]} with the same ids, {same[1]} with the same offsets", flush=True)
            if first:
                print("   ", *first, sep="\n    ")
    sys.exit(not good)


def all_same(ours, theirs, special):
    """Special tokens around a text have no offsets that would say anything."""
    return all(a == b for i, (a, b) in enumerate(zip(ours, theirs)) if i not in special)


if __name__ == "__main__":
    main()
