#!/usr/bin/env python3
"""Writes the tokenizers and golden files of tests/text/pipeline_golden.c with the `tokenizers` package.

    pip install tokenizers==0.23.* sentencepiece==0.2.*
    tests/golden/make_pipelines.py [FOLDER]

    pipeline/NAME.json    small tokenizers with the steps of published ones, of snippets.txt and ../../examples/facts.txt
    pipeline/NAME.hashes  of each line of text_lines.py four bytes: the hash of its ids, of their offsets in bytes, of
                          the text that the ids make again, and of the text of ten ids at random
    pipeline/steps.txt    for each of many steps, which are put instead of those of gpt2.json: their JSON, and the
                          hash of the hashes of every 20th line
    pipeline/characters.txt  the same of lines in which each code point of the first two planes stands before an "a",
                          for steps that ask what a character is
    pipeline/pairs.txt    for each of the tokenizers and some pairs of lines: the most tokens, and the hash of ids, type
                          ids and offsets; without special tokens where the first number is a multiple of 3

FOLDER has gpt2/encoder.json, gpt2/vocab.bpe, clip/vocab.json and clip/merges.txt: writes their hashes, too.
"""
import base64
import json
import pathlib
import sys

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers
from sentencepiece import sentencepiece_model_pb2 as pb

from text_lines import HERE, N_LINES, SNIPPETS, Random, fnv, hash_ids, line

TO = HERE / "pipeline"
TEXTS = [t.decode("utf-8", "replace") for t in SNIPPETS * 3]
TEXTS += (HERE / "../../examples/facts.txt").read_text("utf-8").splitlines() * 2

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def byte_level(**more):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True, **more}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(key, *steps):
    return {"type": "Sequence", key: list(steps)}


def replace(pattern, content, kind="String"):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def added(token, id, **more):
    return {"id": id, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": True, **more}


def template(single, pair, ids):
    def item(x):
        name, _, type_id = x.partition(":")
        kind = "Sequence" if name in "AB" else "SpecialToken"
        return {kind: {"id": name, "type_id": int(type_id or 0)}}
    return {"type": "TemplateProcessing", "single": [item(x) for x in single.split()],
            "pair": [item(x) for x in pair.split()],
            "special_tokens": {k: {"id": k, "ids": [v], "tokens": [k]} for k, v in ids.items()}}


def trained(pre_tokenizer, normalizer=None, size=1000, suffix=None, alphabet=True, first=()):
    """vocab and merges of a BPE trained with these steps; ids of `first` are the lowest."""
    affix = {"end_of_word_suffix": suffix} if suffix else {}
    base = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": None,
            "model": json.loads(Tokenizer(models.BPE(**affix)).to_str())["model"]}
    t = Tokenizer.from_str(json.dumps(base))
    t.train_from_iterator(TEXTS, trainers.BpeTrainer(
        vocab_size=size - len(first), show_progress=False, **affix,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else []))
    model = json.loads(t.to_str())["model"]
    names = list(first) + sorted(model["vocab"], key=model["vocab"].get)
    return {n: i for i, n in enumerate(dict.fromkeys(names))}, model["merges"]


def write(name, model, added_tokens=(), normalizer=None, pre_tokenizer=None, post_processor=None, decoder=None):
    all = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(added_tokens),
           "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": post_processor,
           "decoder": decoder, "model": model}
    text = json.dumps(all, ensure_ascii=False, separators=(",", ":"))
    (TO / f"{name}.json").write_text(text + "\n", "utf-8")
    return text


def bpe(vocab, merges, **more):
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": vocab, "merges": merges, **more}


# ---- stand-ins

def gpt2():
    vocab, merges = trained(byte_level())
    vocab["<|endoftext|>"] = len(vocab)
    return write("gpt2", bpe(vocab, [" ".join(m) for m in merges]), [added("<|endoftext|>", len(vocab) - 1)],
                 None, byte_level(), byte_level(trim_offsets=False), byte_level())


def llama3():
    pre = sequence("pretokenizers", split(LLAMA3), byte_level(use_regex=False))
    vocab, merges = trained(pre)
    for whole in (" Fukuoka", "1,000", "Ġshinyyy"):  # no merges lead to them
        vocab["".join("Ġ" if c == " " else c for c in whole)] = len(vocab)
    n = len(vocab)
    post = sequence("processors", byte_level(), template("<|begin_of_text|> A", "<|begin_of_text|> A "
                                                         "<|begin_of_text|>:1 B:1", {"<|begin_of_text|>": n}))
    return write("llama3", bpe(vocab, merges, ignore_merges=True),
                 [added("<|begin_of_text|>", n), added("<|end_of_text|>", n + 1), added("<|eot_id|>", n + 2)],
                 None, pre, post, byte_level())


def qwen():
    pre = sequence("pretokenizers", split(QWEN), byte_level(use_regex=False))
    vocab, merges = trained(pre, {"type": "NFC"})
    n = len(vocab)
    return write("qwen", bpe(vocab, merges), [
        added("<|endoftext|>", n), added("<|im_start|>", n + 1), added("<tool_call>", n + 2, special=False),
        added("猫", n + 3, special=False, normalized=True), added("née", n + 4, special=False, normalized=True)],
        {"type": "NFC"}, pre, byte_level(trim_offsets=False), byte_level())


def smollm2():
    pre = sequence("pretokenizers", {"type": "Digits", "individual_digits": True}, byte_level())
    vocab, merges = trained(pre, first=["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return write("smollm2", bpe(vocab, merges), [added(t, i) for t, i in list(vocab.items())[:3]], None, pre, None,
                 byte_level())


def fallback(name, pre, normalizer, first, decoder, added_tokens, post, **more):
    bytes = [f"<0x{i:02X}>" for i in range(256)]
    vocab, merges = trained(pre, normalizer, size=1300, alphabet=False, first=first + bytes)
    rare = {k for k in vocab if len(k) == 1 and ord(k) > 0x2000 and k != "▁" and ord(k) % 3}
    merges = [m for m in merges if not rare & set("".join(m))]
    kept = [k for k in vocab if not rare & set(k)]
    return write(name, bpe({k: i for i, k in enumerate(kept)}, merges, unk_token="<unk>", fuse_unk=True,
                           byte_fallback=True, **more), added_tokens, normalizer, pre, post, decoder)


def llama2():
    decoder = sequence("decoders", replace("▁", " "), {"type": "ByteFallback"}, {"type": "Fuse"},
                       {"type": "Strip", "content": " ", "start": 1, "stop": 0})
    normalizer = sequence("normalizers", {"type": "Prepend", "prepend": "▁"}, replace(" ", "▁"))
    specials = [added("<unk>", 0), added("<s>", 1), added("</s>", 2)]
    return fallback("llama2", None, normalizer, ["<unk>", "<s>", "</s>"], decoder, specials,
                    template("<s> A", "<s> A <s>:1 B:1", {"<s>": 1}))


def gemma():
    decoder = sequence("decoders", replace("▁", " "), {"type": "ByteFallback"}, {"type": "Fuse"})
    first = ["<pad>", "<eos>", "<bos>", "<unk>", "\n\n", "▁▁"]
    specials = [added(t, i) for i, t in enumerate(first[:4])]
    specials += [added(t, 4 + i, special=False) for i, t in enumerate(first[4:])]
    return fallback("gemma", split(" ", "MergedWithPrevious", kind="String"), replace(" ", "▁"), first, decoder,
                    specials, template("<bos> A", "<bos> A <bos>:1 B:1", {"<bos>": 2}))


def clip():
    normalizer = sequence("normalizers", {"type": "NFC"}, replace(r"\s+", " ", "Regex"), {"type": "Lowercase"})
    pre = sequence("pretokenizers", split(CLIP, "Removed", True), byte_level())
    vocab, merges = trained(pre, normalizer, suffix="</w>")
    for c in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocab.setdefault(c + "</w>", len(vocab))
    n = len(vocab)
    vocab |= {"<|startoftext|>": n, "<|endoftext|>": n + 1}
    post = {"type": "RobertaProcessing", "sep": ["<|endoftext|>", n + 1], "cls": ["<|startoftext|>", n],
            "trim_offsets": False, "add_prefix_space": False}
    return write("clip", bpe(vocab, merges, end_of_word_suffix="</w>", unk_token="<|endoftext|>"),
                 [added("<|startoftext|>", n), added("<|endoftext|>", n + 1)], normalizer, pre, post, byte_level())


def xlmr():
    model = pb.ModelProto.FromString((HERE / "unigram.spm").read_bytes())
    charsmap = base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode()
    pieces = [["<s>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]]
    pieces += [[p.piece, p.score] for p in model.pieces if p.type == pb.ModelProto.SentencePiece.NORMAL]
    pieces.append(["<mask>", 0.0])
    n = len(pieces)
    normalizer = sequence("normalizers", {"type": "Precompiled", "precompiled_charsmap": charsmap},
                          replace(" {2,}", " ", "Regex"))
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    return write("xlmr", {"type": "Unigram", "unk_id": 3, "vocab": pieces, "byte_fallback": False},
                 [added(t, i) for i, t in enumerate(("<s>", "<pad>", "</s>", "<unk>"))] +
                 [added("<mask>", n - 1, lstrip=True)], normalizer,
                 sequence("pretokenizers", {"type": "WhitespaceSplit"}, space),
                 template("<s> A </s>", "<s> A </s> </s> B </s>", {"<s>": 0, "</s>": 2}), space)


# ---- single steps

NORMALIZERS = [
    None, {"type": "NFC"}, {"type": "NFD"}, {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Lowercase"},
    {"type": "StripAccents"}, sequence("normalizers", {"type": "NFD"}, {"type": "StripAccents"}, {"type": "NFC"}),
    {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Strip", "strip_left": True,
                                                                 "strip_right": False},
    {"type": "Nmt"}, {"type": "Prepend", "prepend": "x▁é"}, replace("a", ""), replace(r"[0-9]+", "é0", "Regex"),
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
     "lowercase": True},
    {"type": "BertNormalizer", "clean_text": False, "handle_chinese_chars": True, "strip_accents": True,
     "lowercase": False},
    {"type": "ByteLevel"},
]
PRE_TOKENIZERS = [
    None, byte_level(add_prefix_space=True), {"type": "BertPreTokenizer"}, {"type": "Whitespace"},
    {"type": "WhitespaceSplit"}, {"type": "CharDelimiterSplit", "delimiter": "e"},
    {"type": "Digits", "individual_digits": False}, {"type": "Digits", "individual_digits": True},
    *({"type": "Punctuation", "behavior": b} for b in ("Removed", "Contiguous", "MergedWithNext")),
    *(split(r"\s+|[aeé]", b, i) for b in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
      for i in (False, True)),
    split("a", "MergedWithNext", True, "String"), split(r"\w+|\W", "Isolated"), split(r"x*", "Isolated"),
    *({"type": "Metaspace", "replacement": "▁", "prepend_scheme": p, "split": s}
      for p in ("always", "first", "never") for s in (True, False)),
]
DECODERS = [
    None, {"type": "WordPiece", "prefix": "##", "cleanup": True}, {"type": "BPEDecoder", "suffix": "e"},
    {"type": "Metaspace", "replacement": "e", "prepend_scheme": "always", "split": True}, {"type": "Fuse"},
    sequence("decoders", {"type": "ByteFallback"}, replace("Ġ", " ")), replace(r"[a-e]+", "é", "Regex"),
    {"type": "Strip", "content": "Ġ", "start": 1, "stop": 0},
]
MODELS = [{"fuse_unk": True, "unk_token": "!"}, {"unk_token": "!"}, {"continuing_subword_prefix": "Ġ", "merges": []},
          {"end_of_word_suffix": "e"}]
ADDED = [  # with the ids that they get in gpt2.json
    [added("e", 68, special=False, single_word=True)], [added("the", 1001, lstrip=True, rstrip=True, special=False)],
    [added("née", 1001, special=False, normalized=True), added("aé", 1002, lstrip=True),
     added("\t", 1003, special=False, rstrip=True)],
]
CHARACTERS = [
    *({"normalizer": {"type": t}} for t in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")),
    *({"pre_tokenizer": sequence("pretokenizers", split(p, "Removed"), byte_level(use_regex=False))}
      for p in (r"\w", r"\W", r"[\w]", r"[^\w\s]", r"(?i)[-\w]", r"\s", r"[^\s]", r"[\S]", r"\S", r"\d", r"[^\d]", r"\p{L}",
                r"[^\p{L}\p{N}]", r"(?i)[\p{N}\w]+")),
    *({"pre_tokenizer": sequence("pretokenizers", {"type": t}, byte_level(use_regex=False))}
      for t in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer")),
    {"pre_tokenizer": byte_level(add_prefix_space=True), "post_processor": byte_level(add_prefix_space=True)},
]


# ---- hashes

def positions(data):
    """The text of bytes, of which what is not UTF-8 becomes U+FFFD, and where each of its characters begins and ends."""
    text, spans, i = "", [], 0
    while i < len(data):
        for n in range(1, 5):
            try:
                c = data[i:i + n].decode()
                break
            except UnicodeDecodeError as e:
                if e.reason != "unexpected end of data" or i + n >= len(data) or n == 4:
                    c, n = "\ufffd", max(1, e.end - e.start if e.reason != "unexpected end of data" else n)
                    break
        text += c
        spans.append((i, i + n))
        i += n
    assert text == data.decode("utf-8", "replace"), data
    return text, spans


def hash_line(t, number, random_ids):
    data = line(number)
    text, spans = positions(data)
    e = t.encode(text)
    h = hash_ids(e.ids)
    for begin, end in e.offsets:
        h = hash_ids(offsets_in(spans, data, begin, end), h)
    h = fnv(t.decode(e.ids).encode(), h)
    random = Random(2**32 + number)
    return fnv(t.decode([random_ids[random.below(len(random_ids))] for _ in range(10)]).encode(), h)


def offsets_in(spans, data, begin, end):
    at = spans[begin][0] if begin < len(spans) else len(data)
    return [at, spans[end - 1][1] if begin < end else at]


def hash_pair(t, first, second, special):
    data = line(first), line(second)
    (a, a_spans), (b, b_spans) = map(positions, data)
    e = t.encode(a, b, add_special_tokens=special)
    h = hash_ids(e.type_ids, hash_ids(e.ids))
    for sequence_id, offsets in zip(e.sequence_ids, e.offsets):
        spans, text = ((a_spans, data[0]), (b_spans, data[1]))[sequence_id or 0]
        h = hash_ids(offsets_in(spans, text, *offsets) if sequence_id is not None else [0, 0], h)
    return h


def hashes(t, step=1):
    ids = sorted(t.get_vocab(with_added_tokens=True).values())
    return b"".join(hash_line(t, i, ids).to_bytes(4, "little") for i in range(0, N_LINES, step))


def write_characters(text):
    """Lines of 256 code points; those that are not characters are left out."""
    rows = []
    for steps in CHARACTERS:
        t, h = Tokenizer.from_str(json.dumps({**json.loads(text), **steps})), fnv(b"")
        for first in range(0, 0x20000, 256):
            line = "".join(chr(c) + "a" for c in range(first, first + 256) if not 0xD800 <= c < 0xE000)
            e, at = t.encode(line), [0]
            for c in line:
                at.append(at[-1] + len(c.encode()))
            h = hash_ids((at[x] for span in e.offsets for x in span), hash_ids(e.ids, h))
        rows.append(f"{h:08x} {json.dumps(steps, ensure_ascii=True)}\n")
    (TO / "characters.txt").write_text("".join(rows))


def main():
    TO.mkdir(exist_ok=True)
    made = {f.__name__: f() for f in (gpt2, llama3, qwen, smollm2, llama2, gemma, clip, xlmr)}
    for name, text in made.items():
        (TO / f"{name}.hashes").write_bytes(hashes(Tokenizer.from_str(text)))
    rows = []
    for name, text in made.items():
        t = Tokenizer.from_str(text)
        for first in range(0, 200, 5):
            most = [0, 12, 25, 60][first // 5 % 4]
            t.no_truncation()
            if most:
                t.enable_truncation(most)
            h = hash_pair(t, first, first + 7, first % 3 > 0)
            rows.append(f"{name} {first} {first + 7} {most} {h:08x}\n")
    (TO / "pairs.txt").write_text("".join(rows))
    rows = []
    for key, steps in (("normalizer", NORMALIZERS), ("pre_tokenizer", PRE_TOKENIZERS), ("decoder", DECODERS),
                       ("model", MODELS), ("added_tokens", ADDED)):
        for step in steps:
            all = json.loads(made["gpt2"])
            all[key] = {**all["model"], **step} if key == "model" else step
            h = fnv(hashes(Tokenizer.from_str(json.dumps(all)), 20))
            rows.append(f"{h:08x} {json.dumps({key: step}, ensure_ascii=True)}\n")
    (TO / "steps.txt").write_text("".join(rows))
    write_characters(made["gpt2"])
    if len(sys.argv) > 1:
        from transformers import CLIPTokenizerFast, GPT2TokenizerFast
        folder = pathlib.Path(sys.argv[1])
        gpt = GPT2TokenizerFast(vocab=str(folder / "gpt2/encoder.json"), merges=str(folder / "gpt2/vocab.bpe"))
        (TO / "real_gpt2.hashes").write_bytes(hashes(gpt.backend_tokenizer, 5))
        other = CLIPTokenizerFast(vocab=str(folder / "clip/vocab.json"), merges=str(folder / "clip/merges.txt"))
        # the class strips all white space of decoded text; here, as in tokenizer.json, only spaces
        js = json.loads(other.backend_tokenizer.to_str())
        js["decoder"] = sequence("decoders", js["decoder"], replace("</w>", " "), {"type": "Strip", "content": " ",
                                                                                    "start": 999, "stop": 0})
        plain = Tokenizer.from_str(json.dumps(js))
        decode = plain.decode
        other.backend_tokenizer.decode = lambda ids: decode(ids).rstrip(" ")
        (TO / "real_clip.hashes").write_bytes(hashes(other.backend_tokenizer, 5))


if __name__ == "__main__":
    main()
