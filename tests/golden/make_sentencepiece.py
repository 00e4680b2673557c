#!/usr/bin/env python3
"""Writes the models and golden files of tests/text/sentencepiece_golden.c with the `sentencepiece` package.

    pip install sentencepiece==0.2.*
    tests/golden/make_sentencepiece.py

    unigram.spm, bpe.spm      small models, of snippets.txt and ../../examples/facts.txt
    unigram.txt, bpe.txt      of each line of text_lines.py one hash: of its ids, of the text that these make again,
                              and of the text of ten ids by chance
    sentencepiece.txt         for each setting: the model, what is appended to its file (a message that is appended is
                              merged), and the hash of all hashes of every tenth line
"""
import io
import itertools
import tempfile
import unicodedata

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as pb

from text_lines import HERE, N_LINES, SNIPPETS, Random, fnv, hash_ids, line


def rules():
    """Some of NFKC, and control characters that go or become a space: as many rules as a small file can have."""
    yield [0x1A], []
    for c in (0x9, 0xA, 0xD, 0x1680, 0x200B, 0x2028):
        yield [c], [0x20]
    compatible = [*range(0xA0, 0x180), *range(0x2000, 0x2040), 0x3000, *range(0xFF01, 0xFFA0), *range(0xFB00, 0xFB07),
                  0xFDFA, 0x2126]
    for c in compatible:
        composed = unicodedata.normalize("NFKC", chr(c))
        for source in {chr(c), unicodedata.normalize("NFD", chr(c))}:
            if source != composed:
                yield [ord(x) for x in source], [ord(x) for x in composed]


def train(name, **options):
    text = [t.decode("utf-8", "replace") for t in SNIPPETS * 3]
    text += (HERE / "../../examples/facts.txt").read_text("utf-8").splitlines() * 2
    written = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as tsv:
        for source, target in rules():
            print(" ".join(f"{c:X}" for c in source), " ".join(f"{c:X}" for c in target), sep="\t", file=tsv)
        tsv.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text), model_writer=written, character_coverage=0.999,
            normalization_rule_tsv=tsv.name, minloglevel=2, hard_vocab_limit=False,
            **options)
    model = pb.ModelProto.FromString(written.getvalue())
    model.normalizer_spec.ClearField("normalization_rule_tsv")  # a path
    data = model.SerializeToString()
    (HERE / f"{name}.spm").write_bytes(data)
    return data


def hash_line(model, number):
    ids = model.encode(line(number))
    h = fnv(model.decode(ids).encode(), hash_ids(ids))
    random = Random(2**32 + number)
    return fnv(model.decode([random.below(len(model)) for _ in range(10)]).encode(), h)


models = {
    "unigram": train("unigram", model_type="unigram", vocab_size=1500, control_symbols=["<ctl>"],
                     user_defined_symbols=["<sep>", "日本", "aé", "aéaéa", "1,0"]),
    "bpe": train("bpe", model_type="bpe", vocab_size=1500, byte_fallback=True, bos_id=-1,
                 user_defined_symbols=["[MASK]", "猫で"]),
}
settings = []
for name, data in models.items():
    model = sentencepiece.SentencePieceProcessor(model_proto=data)
    (HERE / f"{name}.txt").write_text("".join(f"{hash_line(model, i):08x}\n" for i in range(N_LINES)))
    flags = [False, True]
    for kind, suffix, prefix, remove, escape in itertools.product(range(1, 5), flags, flags, flags, flags):
        other = pb.ModelProto()
        other.trainer_spec.model_type = kind
        other.trainer_spec.treat_whitespace_as_suffix = suffix
        other.normalizer_spec.add_dummy_prefix = prefix
        other.normalizer_spec.remove_extra_whitespaces = remove
        other.normalizer_spec.escape_whitespaces = escape
        tail = other.SerializeToString()
        model = sentencepiece.SentencePieceProcessor(model_proto=data + tail)
        settings.append(f"{name} {tail.hex()} {hash_ids(hash_line(model, i) for i in range(0, N_LINES, 10)):08x}\n")
(HERE / "sentencepiece.txt").write_text("".join(settings))
