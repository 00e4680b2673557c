"""Random folders of static embeddings, as model2vec and sentence-transformers write them, and what these packages make
of texts (make_static.py, check_static.py)."""
import collections
import json
import pathlib
import random

import numpy
import torch
from model2vec import StaticModel
from safetensors.numpy import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

WORDS = ("the quick brown fox jumps over lazy dog and runs away from an old grey wolf while seven small birds sing near "
         "water Zürich naïve café Straße 東京 москва 12 345 re-do don't U.S.").split()
KINDS = ("bert", "llama", "bytes", "unigram", "words")
OTHER = ["🦊", "ﬁne", "☃", "привет", "x" * 30, "[UNK]", "<unk>", "¡Hola!", "  spaces  ", "日本", "e\u0301"]


def texts(r, n):
    """Also one without tokens, one of unknown ones alone, and long ones"""
    pick = WORDS * 4 + OTHER
    lines = [" ".join(r.choice(pick) for _ in range(r.choice((1, 2, 5, 12, 40)))) for _ in range(n - 3)]
    return lines + ["", "☃☃", " ".join(r.choice(pick) for _ in range(700))]


def merges(words, n):
    """The n most frequent pairs, one after the other; equal ones in alphabetical order"""
    words, found = [list(w) for w in words], []
    while len(found) < n:
        count = collections.Counter(p for w in words for p in zip(w, w[1:]))
        if not count:
            break
        best = min(count, key=lambda p: (-count[p], p))
        found.append(best)
        for w in words:
            for i in range(len(w) - 1, 0, -1):
                if tuple(w[i - 1:i + 1]) == best:
                    w[i - 1:i + 1] = ["".join(best)]
    return found


def bpe(words, alphabet, special, size, **more):
    pairs = merges(words, size - len(special) - len(alphabet))
    tokens = special + alphabet + list(dict.fromkeys("".join(p) for p in pairs))
    return Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, pairs, **more))


def tokenizer(kind, size):
    """A small tokenizer like a published one, of about this size, always the same: trainers break ties at random"""
    lower = sorted({w.lower() for w in WORDS})
    if kind == "bert":
        plain = [normalizers.BertNormalizer().normalize_str(w) for w in lower]
        letters = sorted(set("".join(plain)))
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + letters + ["##" + c for c in letters] + plain
        vocabulary = {t: i for i, t in enumerate(list(dict.fromkeys(tokens))[:size])}
        t = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
        t.post_processor = processors.BertProcessing(("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
        special = tokens[:5]
    elif kind == "words":
        special = ["[UNK]", "[PAD]"]
        t = Tokenizer(models.WordLevel({t: i for i, t in enumerate((special + lower)[:size])}, unk_token="[UNK]"))
    elif kind == "llama":
        words = ["▁" + w for w in WORDS]
        special = ["<unk>", "<s>", "</s>"]
        t = bpe(words, sorted(set("".join(words))), special, size, unk_token="<unk>", fuse_unk=True)
        t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    elif kind == "bytes":
        step, special = pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"]
        words = [step.pre_tokenize_str(" " + w)[0][0] for w in WORDS]
        t = bpe(words, sorted(pre_tokenizers.ByteLevel.alphabet()), special, max(size, 280))
        t.pre_tokenizer, t.decoder = step, decoders.ByteLevel()
    else:
        special = ["<s>", "<pad>", "</s>", "<unk>"]
        words = ["▁" + w for w in WORDS]
        pieces = (words + ["▁"] + sorted(set("".join(WORDS))))[-(size - 4):]
        t = Tokenizer(models.Unigram([(p, 0.0) for p in special] + [(p, -2.0 - i / 16) for i, p in enumerate(dict.fromkeys(pieces))], 3))
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    if kind in ("bert", "words"):
        t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    t.add_special_tokens(special)
    return t


def extended(t, r):
    """Perhaps with an added token, as model2vec adds words of several tokens"""
    if r.random() < 0.4:
        t.add_tokens([AddedToken("brown fox", normalized=True)])
    return t


class Model2vec:
    """model2vec's folder and results"""

    def __init__(self, r, i, small=False):
        self.kind = KINDS[i % 5]
        self.tokenizer = extended(tokenizer(self.kind, r.choice((90, 120) if small else (120, 160, 220))), r)
        self.dtype = ("float32", "float16", "int8")[i % 3]
        self.n, self.dim = self.tokenizer.get_vocab_size(), r.choice((3, 8) if small else (3, 16, 32, 40, 64))
        self.config = {"normalize": r.random() < 0.6, "max_length": r.choice((512, 512, None, 7, 40))}
        self.typed = r.random() < 0.7  # what distill writes
        self.mapped = r.random() < 0.5
        self.weighted = self.mapped or r.random() < 0.2
        g = numpy.random.default_rng(i)
        rows = self.n // 2 if self.mapped else self.n
        x = g.standard_normal((rows, self.dim))
        self.x = numpy.clip(numpy.rint(x * 40), -127, 127).astype(self.dtype) if self.dtype == "int8" else x.astype(self.dtype)
        self.mapping = g.integers(0, rows, self.n).astype(r.choice(("int32", "int64"))) if self.mapped else None
        self.weights = g.random(self.n).astype(r.choice(("float32", "float64"))) if self.weighted else None
        self.plain = r.random() < 0.3  # as older versions, without modules.json

    def model(self, x, weights):
        config = {"model_type": "model2vec", "architectures": ["StaticModel"], "hidden_dim": self.dim,
                  "seq_length": 1000000} if self.typed else {}
        return StaticModel(x, self.tokenizer, dict(config), weights=weights, token_mapping=self.mapping, **self.config)

    def write(self, folder):
        self.model(self.x, self.weights).save_pretrained(folder)
        (folder / "README.md").unlink(missing_ok=True)
        if self.plain:
            (folder / "modules.json").unlink()

    def encode(self, folder, lines, dtype):
        m = StaticModel.from_pretrained(folder)
        weights = None if m.weights is None else m.weights.astype(dtype)
        m = StaticModel(m.embedding.astype(dtype), m.tokenizer, m.config, weights=weights, token_mapping=m.token_mapping,
                        normalize=m.normalize, max_length=m.max_length)
        if dtype == "float64":  # encode normalizes in float32
            y = m.encode(lines, normalize=False)
            return y / (numpy.linalg.norm(y, axis=1, keepdims=True) + 1e-32) if m.normalize else y
        return m.encode(lines)

    def ids(self, folder, lines):
        m = StaticModel.from_pretrained(folder)
        limit = m.max_length and m.max_length * m.median_token_length
        return m.tokenize([t[:limit] for t in lines])


class Static:
    """The module StaticEmbedding: its folder and results"""

    def __init__(self, r, i, small=False):
        self.kind = KINDS[i % 5]
        self.tokenizer = tokenizer(self.kind, r.choice((90, 120) if small else (120, 160, 220)))
        if r.random() < 0.5:
            self.tokenizer.enable_truncation(r.choice((4, 30, 512)), direction=r.choice(("left", "right")))
        if r.random() < 0.3:
            self.tokenizer.enable_padding()
        self.dtype = ("float32", "float16", "bfloat16")[i % 3]
        self.n, self.dim = self.tokenizer.get_vocab_size(), r.choice((3, 8) if small else (3, 16, 32, 40, 64))
        self.x = torch.randn(self.n, self.dim, generator=torch.Generator().manual_seed(i)).to(getattr(torch, self.dtype))
        self.normalize, self.nested, self.old = r.random() < 0.5, r.random() < 0.5, r.random() < 0.5

    def write(self, folder):
        static = StaticEmbedding(self.tokenizer, embedding_weights=self.x.clone())
        SentenceTransformer(modules=[static] + [Normalize()] * self.normalize, device="cpu").save(str(folder), create_model_card=False)
        modules = json.loads((folder / "modules.json").read_text())
        if self.nested and modules[0]["path"] == "":  # as older versions
            (folder / "0_StaticEmbedding").mkdir()
            for name in "model.safetensors", "tokenizer.json":
                (folder / name).rename(folder / "0_StaticEmbedding" / name)
            modules[0]["path"] = "0_StaticEmbedding"
        for m in modules:
            if self.old:
                m["type"] = "sentence_transformers.models." + m["type"].split(".")[-1]
        (folder / "modules.json").write_text(json.dumps(modules, indent=2))

    def encode(self, folder, lines, dtype):
        return SentenceTransformer(str(folder), device="cpu").to(getattr(torch, dtype)).encode(lines, batch_size=len(lines))

    def ids(self, folder, lines):
        path = folder / "0_StaticEmbedding"
        t = Tokenizer.from_file(str((path if path.exists() else folder) / "tokenizer.json"))
        t.no_padding()
        return [e.ids for e in t.encode_batch(lines, add_special_tokens=False)]


def variant(family, i, small=False):
    r = random.Random(f"{family.__name__} {i}")
    return family(r, i, small), texts(r, 12 if small else 40)
