#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets beside itself: python3 fuzz/corpus/make.py"""
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
SEPARATOR = b"\x1e"  # between the files of one input


def write(target, name, data):
    (HERE / target).mkdir(exist_ok=True)
    (HERE / target / name).write_bytes(data)


def sections(*parts):
    encoded = (p if isinstance(p, bytes) else p.encode() if isinstance(p, str) else json.dumps(p).encode() for p in parts)
    return SEPARATOR.join(encoded)


# ---- safetensors: (name, dtype, shape) one after the other

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}


def safetensors(tensors, metadata=None):
    header, offset = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, dtype, shape in tensors:
        size = SIZES[dtype]
        for d in shape:
            size *= d
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return text, bytes(i % 256 for i in range(offset))


def write_safetensors(name, tensors, metadata=None):
    text, data = safetensors(tensors, metadata)
    write("safetensors", name, len(text).to_bytes(8, "little") + text + data)
    write("safetensors", name + "-sections", sections(text, data))


write_safetensors("empty", [])
write_safetensors("one", [("a", "F32", [2, 3])])
write_safetensors("two", [("a", "I64", [1]), ("b", "BF16", [2, 2])], {"format": "pt"})
write_safetensors("kinds", [(d.lower(), d, [1]) for d in SIZES])
write_safetensors("shapes", [("scalar", "F32", []), ("none", "F16", [0, 7]), ("deep", "U8", [1] * 8)])

# ---- npy: of each version, and what is refused


def npy(version, descr, order, shape, length, data):
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode().ljust(length)
    return b"\x93NUMPY" + bytes([version, 0]) + length.to_bytes(2 if version == 1 else 4, "little") + text + data


NUMBERS = struct.pack("<6f", *range(6))
for version in (1, 2, 3):
    write("npy", f"version-{version}", npy(version, "<f4", False, (2, 3), 118, NUMBERS))
write("npy", "odd", npy(1, "<f4", False, (2, 3), 119, NUMBERS))
write("npy", "fortran", npy(1, "<f4", True, (2, 3), 118, NUMBERS))
write("npy", "double", npy(1, "<f8", False, (1, 3), 118, NUMBERS))
write("npy", "vector", npy(1, "<f4", False, (6,), 118, NUMBERS))

# ---- attention: bytes that choose a call; behind their end all choices are the first

write("attention", "first", b"\0")
for n in range(4):
    write("attention", f"mixed-{n}", bytes((i * i * 37 + i * (101 + 2 * n) + n * 59) % 251 for i in range(160)))

# ---- config: the settings of a sentence-transformers folder, in the order of `files` in ../config.c

BERT = {"model_type": "bert", "hidden_act": "gelu", "hidden_size": 12, "intermediate_size": 16, "layer_norm_eps": 1e-12,
        "max_position_embeddings": 8, "num_attention_heads": 3, "num_hidden_layers": 2, "type_vocab_size": 2,
        "vocab_size": 30, "position_embedding_type": "absolute", "is_decoder": False, "pruned_heads": {}}
POOLING = {"word_embedding_dimension": 12, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True,
           "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}


def modules(*kinds):
    paths = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    return [{"idx": i, "name": str(i), "path": paths[k], "type": "sentence_transformers.models." + k}
            for i, k in enumerate(kinds)]


write("config", "older", sections(BERT, modules("Transformer", "Pooling", "Normalize"), POOLING,
                                  {"max_seq_length": 8, "do_lower_case": False}, {"model_max_length": 512},
                                  {"__version__": {"pytorch": "1.8.1"}}))
write("config", "newer", sections(
    dict(BERT, hidden_act="gelu_new"), modules("Transformer", "Pooling", "Normalize"),
    {"embedding_dimension": 12, "pooling_mode": "cls", "include_prompt": True},
    {"transformer_task": "feature-extraction", "module_output_name": "token_embeddings",
     "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}},
    {"model_max_length": 1e30},
    {"model_type": "SentenceTransformer", "prompts": {"query": ""}, "default_prompt_name": "query"},
    {"module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"}))
write("config", "bert", sections(dict(BERT, hidden_act="relu", hidden_size=1e300)))
write("config", "prompt", sections(BERT, modules("Transformer", "Pooling"), dict(POOLING, pooling_mode=["max"]), "", "",
                                   {"prompts": {"q": "query: "}, "default_prompt_name": "q"}))

# ---- tokenizer: a text, alone or with the tokenizer to read it with, in the order of `files` in ../tokenizer.c

TEXT = "Hello, unable [MASK] \u65e5\u672c b\u00e9ab"
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "un", "##able", "\u65e5", ",", "b", "##e", "##a"]
SPECIAL = [{"id": i, "content": t, "special": True, "normalized": False} for i, t in enumerate(TOKENS[:5])]
TEMPLATE = {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "special_tokens": {t: {"id": t, "ids": [i], "tokens": [t]} for t, i in (("[CLS]", 2), ("[SEP]", 3))}}
TOKENIZER = {"added_tokens": SPECIAL,
             "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                            "strip_accents": None, "lowercase": True},
             "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": TEMPLATE,
             "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                       "max_input_chars_per_word": 100, "vocab": {t: i for i, t in enumerate(TOKENS)}}}

write("tokenizer", "text", TEXT.encode())
write("tokenizer", "bytes", b"a\x00b\xff\xc3\x28\xe2\x82 \xed\xa0\x80\xf0\x9f\x98\x80\xf4\x90\x80\x80 [MASK]\t\r\n[SEP")
write("tokenizer", "marks", "a\u0323\u0301b \u1100\u1161\u11a8 \u0130\u03c3\u03a3 \u0f71\u0f72\ufb01 x\u0334\u0300".encode())
write("tokenizer", "json", sections(TEXT, TOKENIZER, {"do_lower_case": True}))
write("tokenizer", "processing", sections("B\u00c9 [SEP]", dict(
    TOKENIZER, post_processor={"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]},
    normalizer=dict(TOKENIZER["normalizer"], lowercase=False, strip_accents=False))))
write("tokenizer", "txt", sections(TEXT, "", {"do_lower_case": False, "additional_special_tokens": ["hello"],
                                              "mask_token": {"content": "[MASK]"}, "never_split": None},
                                   "\n".join(TOKENS) + "\n", {"unk_token": "[UNK]"}))

# ---- sentencepiece: a text, alone or with the model to read it with


def varint(n):
    return bytes([n & 0x7F | 0x80]) + varint(n >> 7) if n > 0x7F else bytes([n])


def field(number, value):
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def piece(text, score=0.0, kind=1):
    return field(1, field(1, text) + field(2, score) + field(3, kind))


def charsmap():
    """Two rules: "x" becomes "a", "xy" becomes nothing."""
    units, x, y = [0] * 512, 256 ^ ord("x"), 258 ^ ord("y")
    units[0] = 256 << 10
    units[x] = (x ^ 258) << 10 | 1 << 8 | ord("x")
    units[258] = 1 << 31
    units[y] = (y ^ 129) << 10 | 1 << 8 | ord("y")
    units[129] = 1 << 31 | 2
    return struct.pack("<513I", 2048, *units) + b"a\0\0"


PIECES = piece("<unk>", kind=2) + piece("</s>", kind=3) + b"".join(
    piece(t, -1.0 - i) for i, t in enumerate(["a", "b", "ab", "\u2581a", "\u2581", "\u65e5", "aba", "l", "e"])
) + piece("[MASK]", kind=4)
BYTES = b"".join(piece(f"<0x{i:02X}>", kind=6) for i in range(256)) + field(2, field(35, 1))

write("sentencepiece", "text", TEXT.encode())
write("sentencepiece", "bytes", b"a\x00b\xff\xc3\x28\xe2\x82 \xed\xa0\x80\xf0\x9f\x98\x80 [MASK]  aba\xe2\x96\x81")
for number, name in enumerate(["unigram", "bpe", "word", "char"], 1):
    write("sentencepiece", name, sections(TEXT, PIECES + field(2, field(3, number))))
write("sentencepiece", "fallback", sections(TEXT, PIECES + BYTES + field(2, field(3, 2))))
write("sentencepiece", "charsmap", sections("axy xab", PIECES + field(3, field(2, charsmap()) + field(4, 0))))
write("sentencepiece", "spaces", sections("  a  b ", PIECES + field(3, field(3, 0) + field(5, 0)) + field(2, field(24, 1))))

# ---- bleu: how words are cut, the translation, its references

write("bleu", "words", b"\x00" + sections("The cat, the cat: 3.5-4 &amp; more.", "The cat and 3.5 - 4 &more.", "A cat."))
write("bleu", "characters", b"\x01" + sections("猫は魚を食べた。", "その猫が魚を食べました。"))
write("bleu", "bytes", b"\x02" + sections(b"a\xff \xe2\x82 b\xc2\xa0c", b"a\xff b\xe3\x80\x80c"))

# ---- gguf: a model of one layer with its tokenizer, of byte level and of pieces

GGUF_TYPES = {"u32": 4, "i32": 5, "f32": 6, "bool": 7, "text": 8}
GGUF_PACK = {"u32": "<I", "i32": "<i", "f32": "<f", "bool": "<B"}


def gguf_text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def gguf_item(kind, x):
    return gguf_text(x) if kind == "text" else struct.pack(GGUF_PACK[kind], x)


def gguf(values, tensors):
    head, infos, data = b"", b"", b""
    for key, kind, x in values:
        head += gguf_text(key)
        if isinstance(x, list):
            head += struct.pack("<IIQ", 9, GGUF_TYPES[kind], len(x)) + b"".join(gguf_item(kind, i) for i in x)
        else:
            head += struct.pack("<I", GGUF_TYPES[kind]) + gguf_item(kind, x)
    for name, number, block, size, dims in tensors:  # dims: the contiguous one first
        infos += gguf_text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        infos += struct.pack("<IQ", number, len(data))
        elements = 1
        for d in dims:
            elements *= d
        data += bytes(elements // block * size)
        data += bytes(-len(data) % 32)
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values)) + head + infos
    return out + bytes(-len(out) % 32) + data


F32, Q4_1, Q8_0 = (0, 1, 4), (3, 32, 20), (8, 32, 34)


def gguf_model(arch, tokens, kinds, tokenizer):
    a = arch + "."
    values = [("general.architecture", "text", arch), (a + "block_count", "u32", 1), (a + "context_length", "u32", 16),
              (a + "embedding_length", "u32", 32), (a + "feed_forward_length", "u32", 32),
              (a + "attention.head_count", "u32", 4), (a + "attention.head_count_kv", "u32", 2),
              (a + "attention.layer_norm_rms_epsilon", "f32", 1e-5), ("tokenizer.ggml.tokens", "text", tokens),
              ("tokenizer.ggml.token_type", "i32", kinds), ("tokenizer.ggml.bos_token_id", "u32", 1),
              ("tokenizer.ggml.eos_token_id", "u32", 2), ("tokenizer.chat_template", "text", "{{ messages }}")]
    tensors = [("token_embd.weight", *Q8_0, [32, len(tokens)]), ("output_norm.weight", *F32, [32]),
               ("rope_freqs.weight", *F32, [4])]
    for name, rows in [("attn_q", 32), ("attn_k", 16), ("attn_v", 16), ("attn_output", 32), ("ffn_gate", 32),
                       ("ffn_up", 32), ("ffn_down", 32)]:
        tensors.append((f"blk.0.{name}.weight", *Q4_1, [32, rows]))
    for name in ["attn_norm", "ffn_norm"]:
        tensors.append((f"blk.0.{name}.weight", *F32, [32]))
    return gguf(values + tokenizer, tensors)


write("gguf", "bytes", gguf_model(
    "llama", ["<|end|>", "<s>", "</s>", "H", "e", "l", "o", "Ġ", "He", "ll"], [3, 3, 3, 1, 1, 1, 1, 1, 1, 1],
    [("tokenizer.ggml.model", "text", "gpt2"), ("tokenizer.ggml.pre", "text", "llama-bpe"),
     ("tokenizer.ggml.merges", "text", ["H e", "l l"])]))
write("gguf", "pieces", gguf_model(
    "qwen2", ["<unk>", "<s>", "</s>", "▁", "H", "e", "▁H", "▁He", "<0x0A>"], [2, 3, 3, 1, 1, 1, 1, 1, 6],
    [("tokenizer.ggml.model", "text", "llama"), ("tokenizer.ggml.scores", "f32", [float(-i) for i in range(9)]),
     ("tokenizer.ggml.unknown_token_id", "u32", 0), ("tokenizer.ggml.add_eos_token", "bool", 1)]))
write("gguf", "empty", gguf([], []))

# ---- blocks of a type, by its number in fuzz/quantized.c; five rows, seven columns

for number, size in enumerate([34, 18, 20, 22, 24, 18, 136, 144, 176, 210, 110, 84]):
    write("quantized", f"type{number}", bytes([number, 4, 6, 0]) + bytes((i * 37 + i // 7) % 60 for i in range(7 * size)))

# ---- images, which tests/golden/make_images.py makes

for target, suffix, names in [
        ("jpeg", "jpg", ["420", "gray_progressive", "restarts", "rgb", "orientation_6", "cmyk"]),
        ("png", "png", ["gray_1", "gray_alpha_16", "interlaced_1", "palette_transparent", "rgb_transparent",
                        "rgba_interlaced", "orientation_8", "huge"]),
        ("tiff", "tif", ["tiles", "planes", "palette_4", "jpeg", "lzw", "group4", "rgba_premultiplied", "ycbcr", "preview"]),
        ("webp", "webp", ["lossy", "lossless_alpha", "lossy_alpha", "orientation_6", "animated"])]:
    for name in names:
        write(target, name, (HERE / f"../../tests/golden/images/{name}.{suffix}").read_bytes())

# ---- logs of interactions, after a byte for the format (a multiple of 6: what the first line shows) and options

for name, first, text in [
        ("lines", 0, "a x 3\nb y 1\na z 2\na x 5\nb z 4\nb x 6\na y 7\n"), ("pairs", 1, "a x\na y\na z\nb x\r\n\nb y\n"),
        ("tabs", 6, "ü 1\tx y\t5\t1e3\nü 1\tz\t1\t-.5\n"), ("movielens", 2, "1::2::5::978300760\n1::3::4::978300761\n"),
        ("inter", 3, "user_id:token\titem_id:token\ttimestamp:float\na\tx\t3\na\ty\t3\na\tz\t1\n"),
        ("csv", 4, "note,user,item,time\n\"a, b\",u,\"x \"\"1\"\"\",5\n,u,y,5\n,u,y,5\n"),
        ("distinct", 132, "user,item,time\nu,x,5\nu,x,5\nu,y,6\nv,z,1\n"), ("histories", 5, "a x y z x w\nb y z x\nc w\n"),
        ("untimed", 70, "a x 3\nb y 1\na z 2\n"), ("mark", 0, "\ufeffa x\nb y\n"),
        ("dates", 0, "user,item,date\nu,x,2024-02-29T10:00:00.5+01:00\nu,y,2024-02-29\nu,z,2024-02-28 23:59:60 UTC\n"),
        ("columns", 0, "Customer Email, SKU ,Ordered At,sku_2\nu,x,1997-09-20,a\nu,y,19970920T0305Z,b\n"),
        ("numbers", 36, "x,u,20\ny,u,10\nz,u,30\n"), ("ratings", 6, "u x 5\nu y 3\nu z 5\nv x 1\nv y 3\nv z 1\n"),
        ("spaces", 18, "u x 4 2020-01-01 10:00:00 +01\nu y 5 2020-01-01 09:00:00 Z\nu\n"),
        ("unused", 48, "user;item;wann\nu;x;1600000000000\nu;y;5\nu;z;5\n"),
        ("time", 0, "1997-09-20T03:05:10.123456789+01:30")]:
    write("interactions", name, bytes([first]) + text.encode())

# ---- tables, after a byte for the options (1: tabs, 2: malformed records are left out)

for name, options, text in [
    ("csv", 0, 'a,b\n"c, ""d""","e\nf"\n\n,\ng,h'),
    ("excel", 0, '\ufeffsep=;\r\na;"b\r\n";c\r\n;;\r\n1,5;2,5;x\r\n'),
    ("spaces", 0, 'a, b, "c, d"\ne,  f,\n'),
    ("mac", 0, 'a,b\rc,d\r'),
    ("tabs", 1, '"a\tb\n\t\nc\td\te\n'),
    ("damaged", 2, 'a,b\nc,"d\n"e"f,g\nh,\u00e4\n'),
]:
    write("table", name, bytes([options]) + text.encode())

# ---- captions, after a byte for the options (1: as typed, 2: a list); the list of images after them

COCO = {"info": {"year": 2017}, "images": [{"id": 7, "file_name": "1.jpg", "height": 5}, {"id": 8, "file_name": "2.jpg"}],
        "annotations": [{"image_id": 7, "id": 1, "caption": "A dog runs."}, {"image_id": 8, "caption": "Gr\u00e4ser"}]}
for name, options, text, *names in [
        ("token", 0, "1.jpg#0\tA T-shirt .\n1.jpg#1\tTwo dogs\n2.jpg#0\tÜ !\n"), ("tabs", 1, "\ufeff1.jpg\tA dog .\r\n\r\n2.jpg\tb"),
        ("csv", 0, "image,caption\n1.jpg,\"A \"\"dog\"\", runs\"\n2.jpg,.\n1.jpg,b\n"), ("coco", 0, COCO),
        ("header", 0, "n\tcomment\tfile_name\n0\ta dog\t1.jpg\n"), ("list", 2, "1.jpg\ta\n2.jpg\tb\n1.jpg\tc\n", "2.jpg\n1.jpg\n"),
        ("coco-list", 3, COCO, "2.jpg\r\n"), ("path", 0, "../1.jpg\ta\n")]:
    write("captions", name, bytes([options]) + sections(text, *names))

# ---- recommenders: config.json, items.json, and the weights as two sections


def layer(n):
    names = [f"attention.{x}" for x in ("query", "key", "value", "output")]
    names += ["feed_forward.inner", "feed_forward.outer"]
    return ([(f"layer.{n}.{x}.{y}", "F32", [2, 2] if y == "weight" else [2]) for x in names for y in ("weight", "bias")] +
            norm(f"layer.{n}.attention_norm") + norm(f"layer.{n}.feed_forward_norm"))


def norm(name):
    return [(f"{name}.weight", "F32", [2]), (f"{name}.bias", "F32", [2])]


def recommender(kind, rows, more, settings=None):
    config = {"model_type": kind, "num_items": 3, "hidden_size": 2, "num_hidden_layers": 1, "intermediate_size": 2,
              "max_position_embeddings": 3} | (settings or {})
    tensors = [("item.weight", "F32", [rows, 2]), ("position.weight", "F32", [3, 2])] + layer(0) + norm("norm") + more
    text, data = safetensors(tensors)
    numbers = [struct.pack("<f", (i * 37 % 23 - 11) / 16) for i in range(len(data) // 4)]
    counts = struct.pack("<3q", 3, 0, 2) if more and more[-1][0] == "counts" else b""
    return sections(config, ["a", "b", "ü"], text, b"".join(numbers)[:len(data) - len(counts)] + counts)


CONTENT = [("content.vectors", "F32", [3, 1]), ("content.projection.weight", "F32", [2, 1])]
TRANSFORM = [("transform.weight", "F32", [2, 2]), ("transform.bias", "F32", [2])]
write("recommender", "sasrec", recommender("attend-sasrec", 3, []))
write("recommender", "content", recommender("attend-sasrec", 3, CONTENT, {"content_width": 1, "hidden_act": "relu"}))
write("recommender", "counts", recommender("attend-sasrec", 3, [("counts", "I64", [3])], {"content_start": True}))
write("recommender", "bert4rec",
      recommender("attend-bert4rec", 4, TRANSFORM + norm("embedding_norm"), {"block": "pre-norm"}))
write("recommender", "no-weights", sections({"model_type": "attend-sasrec", "num_items": 2}, ["a", "a"]))

# ---- programs of chat templates: those of the golden file that run

cases = json.loads((HERE / "../../tests/golden/jinja.json").read_text())["cases"]
cases = [c["template"] for c in cases if c["text"] is not None]
for i in range(0, len(cases), 10):
    write("jinja", f"cases{i // 10}", "\n".join(cases[i : i + 10]).encode())
for path in sorted((HERE / "../../tests/golden/chat").glob("*.jinja")):
    if path.stem in ("qwen3", "llama3.2", "gemma3", "zephyr"):
        write("jinja", path.stem, path.read_bytes())


# ---- hub: the list of a model's files, then what its JSON files have


def hub_file(name, large=False):
    file = {"rfilename": name, "size": 7, "blobId": "01234567" * 5}
    return file | ({"lfs": {"sha256": "01234567" * 8, "size": 7}} if large else {})


def hub(name, files, rest=None):
    listing = {"sha": "01234567" * 5, "siblings": [hub_file(f, f.endswith((".safetensors", ".gguf"))) for f in files]}
    write("hub", name, json.dumps(listing).encode() + (b"\0" + json.dumps(rest).encode() if rest else b""))


INDEX = "model.safetensors.index.json"
hub("index", ["config.json", "modules.json", "1_P/config.json", INDEX, "a.safetensors"], {"weight_map": {"x": "a.safetensors"}})
hub("modules", ["config.json", "modules.json", "1_P/config.json", "a.safetensors"], [{"path": "1_P"}, {"path": ""}])
hub("parts", ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"])
hub("several", ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "b.gguf"])


# ---- requests of attend serve: the type of the body, then the body

def parts(boundary, *fields):
    return "".join(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
                   for name, value in fields) + f"--{boundary}--\r\n"


write("request", "json", b"application/json\n" + json.dumps(
    {"text": "a", "texts": ["a", "b"], "documents": [{"text": "c"}, "d"], "input": [[1, 2], [3]], "flag": False,
     "integer": 3, "number": 0.5, "choice": "two", "json": {"x": [None]}, "ignored": 1, "refused": []}).encode())
write("request", "ids", b'application/json\n{"input": [1, 2, 3], "texts": "a"}')
write("request", "url", b"application/x-www-form-urlencoded\ntext=a%20b&integer=3&flag=true&texts=a&texts=b+c&%00=%zz")
write("request", "parts", ("multipart/form-data; boundary=xyz\n" + parts(
    "xyz", ("text", "a"), ("texts", "b"), ("texts", "--xy\r\n-"), ("number", "1.5"))).encode())
write("request", "file", b'multipart/form-data; boundary="q r"\npreamble\r\n--q r\r\nContent-Disposition: form-data; '
      b'filename="a.png"; name="json"\r\nContent-Type: image/png\r\n\r\n\x89PNG\0\xff\r\n--q r--\r\n')
