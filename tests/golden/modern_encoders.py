"""Encoders with rotary positions for make_encoder_families.py: settings, tokenizers, and float64 throughout."""
import contextlib
import json

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CLASSES = {"modernbert": "ModernBert", "nomic_bert": "NomicBert", "gemma3_text": "Gemma3Text"}


# ---- settings

def config_of(family, s):
    """s: sizes and other settings, by BERT's names; "bases" of rotary positions; "more" by those of the class"""
    cls = getattr(transformers, CLASSES[family] + "Config")
    same = {k: s[k] for k in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                              "max_position_embeddings", "pad_token_id")}
    rope = [{"rope_type": "default", "rope_theta": base} for base in s["bases"]]
    if family == "nomic_bert":
        return cls(**same, type_vocab_size=s["type_vocab_size"], layer_norm_eps=s["layer_norm_eps"],
                   rope_parameters=rope[0], **s["more"])
    same |= {"rope_parameters": dict(zip(("full_attention", "sliding_attention"), rope)), "layer_types": s["layer_types"]}
    if family == "modernbert":
        return cls(**same, hidden_activation=s["hidden_act"], norm_eps=s["layer_norm_eps"], local_attention=s["window"],
                   **s["more"])
    return cls(**same, rms_norm_eps=s["layer_norm_eps"], sliding_window=s["window"], use_bidirectional_attention=True,
               **s["more"])


def types_of(layers, pattern):
    """layer_types as older files state them: every so many layers, the first or the last of them, is full"""
    every, at = pattern
    return ["full_attention" if i % every == at else "sliding_attention" for i in range(layers)]


def make_older(family, folder, pattern=None):
    """Gives config.json the keys of older files, or of NomicBERT's own program."""
    config = json.loads((folder / "config.json").read_text())
    rope = config.pop("rope_parameters")
    if family == "nomic_bert":
        names = {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
                 "intermediate_size": "n_inner", "max_position_embeddings": "n_positions",
                 "layer_norm_eps": "layer_norm_epsilon"}
        config = {names.get(k, k): v for k, v in config.items() if k not in ("head_dim", "hidden_act")}
        config |= {"activation_function": "swiglu", "rotary_emb_base": rope["rope_theta"], "rotary_emb_fraction": 1.0,
                   "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "rotary_emb_interleaved": False,
                   "prenorm": False, "causal": False, "resid_pdrop": 0.0, "attn_pdrop": 0.0}
    else:
        every, full, sliding = (("global_attn_every_n_layers", "global_rope_theta", "local_rope_theta")
                                if family == "modernbert" else ("sliding_window_pattern", "rope_theta", "rope_local_base_freq"))
        del config["layer_types"]
        config |= {every: pattern[0], full: rope["full_attention"]["rope_theta"], sliding: rope["sliding_attention"]["rope_theta"]}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


# ---- float64

@contextlib.contextmanager
def exact():
    """The classes compute some steps in float32 whatever the type of the model is: here in float64."""
    method, softmax, single = torch.Tensor.float, torch.nn.functional.softmax, torch.float
    torch.Tensor.float = torch.Tensor.double
    torch.nn.functional.softmax = lambda x, dim=None, dtype=None: softmax(x, dim=dim)
    torch.float = torch.float64
    try:
        yield
    finally:
        torch.Tensor.float, torch.nn.functional.softmax, torch.float = method, softmax, single


def make_exact(model):
    """Buffers of a model in float64, which its class makes in float32"""
    if hasattr(model, "rotary_emb"):
        with exact():
            model.rotary_emb = type(model.rotary_emb)(model.config)
    if hasattr(getattr(model, "embed_tokens", None), "embed_scale"):
        model.embed_tokens.embed_scale = torch.tensor(model.config.hidden_size ** 0.5, dtype=torch.float64)
    return model


def of_file(model, tensors):
    """Tensors of a model by the names in its file: NomicBERT's are those of its own program, in which queries, keys and
    values are one"""
    names = {"embeddings.LayerNorm": "emb_ln", "layers.": "encoder.layers.", "self_attn.o_proj": "attn.out_proj",
             "mlp.up_proj": "mlp.fc11", "mlp.gate_proj": "mlp.fc12", "mlp.down_proj": "mlp.fc2",
             "post_attention_layernorm": "norm1", "post_mlp_layernorm": "norm2", "self_attn.q_proj": "attn.Wqkv",
             "self_attn.k_proj": "attn.Wqkv", "self_attn.v_proj": "attn.Wqkv"}
    out = {}
    for name, x in tensors.items():
        for theirs, own in names.items() if model.config.model_type == "nomic_bert" else ():
            name = name.replace(theirs, own)
        out[name] = torch.cat([out[name], x]) if name in out else x
    return out


# ---- tokenizers

def save_tokenizer(t, folder, longest, first, last, **special):
    """first, last: the tokens around a text"""
    t.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", pair=f"{first} $A {last} $B:1 {last}:1",
        special_tokens=[(x, t.token_to_id(x)) for x in (first, last)])
    transformers.PreTrainedTokenizerFast(tokenizer_object=t, model_max_length=longest, **special).save_pretrained(folder)
    return t.get_vocab_size()


def byte_level(texts, folder, longest):
    """As ModernBERT: bytes, after NFC"""
    t = Tokenizer(models.BPE())
    t.normalizer, t.pre_tokenizer, t.decoder = normalizers.NFC(), pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=290, show_progress=False, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return save_tokenizer(t, folder, longest, "[CLS]", "[SEP]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
                          pad_token="[PAD]", mask_token="[MASK]")


def bytes_of():
    return [f"<0x{i:02X}>" for i in range(256)]


def japanese(pieces, folder, longest):
    """As the Japanese ModernBERTs: Unigram without a space before the text, and bytes of characters that it lacks"""
    vocab = [(x, 0.0) for x in ("<unk>", "<s>", "</s>", "<pad>", "<sep>", "<mask>", "<cls>")] + [
        (x, 0.0) for x in bytes_of()] + list({**dict(pieces), "日本": -4.0, "です": -4.1, "語": -5.0}.items())
    t = Tokenizer(models.Unigram(vocab, unk_id=0, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="never", split=False)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return save_tokenizer(t, folder, longest, "<s>", "</s>", unk_token="<unk>", bos_token="<s>", eos_token="</s>",
                          pad_token="<pad>", sep_token="<sep>", mask_token="<mask>", cls_token="<cls>")


def gemma(pieces, folder, longest):
    """As Gemma: merges of characters, spaces as a character, and bytes of characters that it lacks"""
    words = [w for w, _ in pieces]
    letters = sorted({c for w in words for c in w})
    merges, known = [], set(letters)
    for w in words:
        for n in range(2, len(w) + 1):  # each word grows by a letter
            if w[:n] not in known:
                known.add(w[:n])
                merges.append((w[:n - 1], w[n - 1]))
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *bytes_of(), *letters, *sorted(known - set(letters))]
    t = Tokenizer(models.BPE({n: i for i, n in enumerate(names)}, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return save_tokenizer(t, folder, longest, "<bos>", "<eos>", unk_token="<unk>", bos_token="<bos>", eos_token="<eos>",
                          pad_token="<pad>", mask_token="<mask>")


def wordpiece(words, folder, longest):
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    transformers.BertTokenizer(vocab={n: i for i, n in enumerate(names)}, model_max_length=longest).save_pretrained(folder)
    return len(names)


# ---- folders

def class_of(family, head):
    other = {"Model": "Gemma3TextModel", "ForMaskedLM": "Gemma3ForCausalLM",
             "ForSequenceClassification": "Gemma3TextForSequenceClassification"}
    return getattr(transformers, other[head] if family == "gemma3_text" else CLASSES[family] + head)


def random_settings(family, rng):
    """For check_encoder_families.py"""
    heads = rng.randint(1, 4)
    layers = rng.randint(1, 5)
    pattern = rng.randint(1, 4)
    vocabulary = rng.randint(20, 120)
    s = {"hidden_size": heads * rng.choice([4, 6, 8, 16, 24]), "num_attention_heads": heads, "num_hidden_layers": layers,
         "intermediate_size": rng.randint(8, 80), "vocab_size": vocabulary, "pad_token_id": rng.choice([0, 1, 5]),
         "hidden_act": rng.choice(["gelu", "gelu_new", "relu", "gelu_pytorch_tanh"]), "type_vocab_size": rng.randint(1, 3),
         "layer_norm_eps": rng.choice([1e-5, 1e-12]), "max_position_embeddings": rng.choice([10, 33, 70, 150, 300]),
         "bases": rng.choice([(160000.0, 10000.0), (1e6, 1e4), (1000.0, 100.0)]), "window": rng.choice([2, 5, 8, 16, 128]),
         "pattern": (pattern, 0 if family == "modernbert" else pattern - 1), "older": rng.random() < 0.4, "more": {}}
    s["layer_types"] = types_of(layers, s["pattern"])
    if not s["older"]:
        s["layer_types"] = [rng.choice(["full_attention", "sliding_attention"]) for _ in range(layers)]
    if family == "modernbert":
        s["more"] = {k: rng.random() < 0.3 for k in ("norm_bias", "attention_bias", "mlp_bias")}
    elif family == "nomic_bert" and not s["older"] and rng.random() < 0.3:
        s["more"] = {"head_dim": 2 * rng.randint(1, 8)}
    elif family == "gemma3_text":
        s["more"] = {"head_dim": 2 * rng.randint(1, 12), "attention_bias": rng.random() < 0.3,
                     "num_key_value_heads": rng.choice([n for n in range(1, heads + 1) if heads % n == 0]),
                     "query_pre_attn_scalar": rng.choice([4, 20, 256])}
    return s


LONGEST = 32
# What the names of parameters end in whose gradients are expected
LEARNED = ("layers.1.attn.Wqkv.weight", "layers.1.mlp.Wi.weight", "layers.0.mlp.fc12.weight", "layers.1.self_attn.k_proj.weight",
           "norm.weight", "emb_ln.weight",
           "token_type_embeddings.weight")
# family, tokenizer, head, dtype, and settings that are not those of golden_settings
GOLDEN = {
    "modernbert": ("modernbert", byte_level, "ForMaskedLM", torch.bfloat16, {}),
    "modernbert_ja": ("modernbert", japanese, "Model", torch.float16,
                      {"hidden_size": 32, "intermediate_size": 32, "hidden_act": "gelu_new", "num_hidden_layers": 2,
                       "layer_types": ["sliding_attention", "full_attention"],
                       "more": {"norm_bias": True, "attention_bias": True, "mlp_bias": True}}),
    "nomic_bert": ("nomic_bert", wordpiece, "Model", torch.float16, {"num_hidden_layers": 2}),
    "gemma3_text": ("gemma3_text", gemma, "Model", torch.bfloat16,
                    {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"],
                     "more": {"head_dim": 8, "num_key_value_heads": 1, "query_pre_attn_scalar": 20}}),
}


def golden_settings(name, tokens):
    layers = ["full_attention", "sliding_attention", "full_attention"]
    return {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 3, "intermediate_size": 24, "hidden_act": "gelu",
            "layer_norm_eps": 1e-5, "type_vocab_size": 2, "pad_token_id": 3, "max_position_embeddings": LONGEST,
            "bases": (1000.0, 100.0), "window": 8, "layer_types": layers, "vocab_size": tokens + 2, "more": {}, **GOLDEN[name][4]}
