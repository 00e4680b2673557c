#!/usr/bin/env python3
"""Writes the folders of encoders/: tiny text encoders of each family that `transformers` saved, with their tokenizers,
and what it computes with them in float64.

    tests/golden/make_encoder_families.py

encoders/NAME has the files of the model, and expected.txt, whose lines are:

    f32 X               the greatest error of transformers' own hidden states in float32
    every N             hidden states are those of each Nth token
    ids I ...           a sequence, then maybe its token types, `types T ...`; then a line of numbers for each token
    weights L H I ...   a sequence, then a line of attention weights for each of its tokens, of layer L, head H
    gradient I ...      a sequence; then `error X`, the greatest error of transformers' gradients of the sum of all squares
                        of its hidden states in float32, `of NAME`, a parameter, and a line with its gradient
    text T              a text; then `ids` of it, and the mean of its hidden states by sentence-transformers
    pair T | T          two texts; then `ids` of the pair

check_encoder_families.py makes many more such folders. Made with transformers 5.23.0, sentence-transformers 6.2.0, torch
2.15.0 on a CPU; tests/stack/encoder_families.c reads them.
"""
import contextlib
import copy
import json
import pathlib
import random
import shutil
import statistics

import modern_encoders as modern
import torch
import transformers
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
FACTS = (HERE / "../../examples/facts.txt").read_text("utf-8").splitlines()
TEXTS = ["The sky is blue.", "a cat", "ein Käfer, 日本語 -- 12!", "x"]
LETTERS = "etaoinshrdlucmfgypwbvkxjqz"

# The first part of the names of the classes, and what this family's settings are called
FAMILIES = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert",
            "distilbert": "DistilBert", "mpnet": "MPNet", **modern.CLASSES}
TYPES = {"bert", "nomic_bert"}  # which have token types
FIRST = {"roberta", "xlm-roberta", "camembert"}  # whose first position is that after the id of padding


# ---- models

def config_of(family, s):
    """s: sizes and other settings, by BERT's names"""
    if family in modern.CLASSES:
        return modern.config_of(family, s)
    cls = getattr(transformers, FAMILIES[family] + "Config")
    if family == "distilbert":
        return cls(vocab_size=s["vocab_size"], dim=s["hidden_size"], n_layers=s["num_hidden_layers"],
                   n_heads=s["num_attention_heads"], hidden_dim=s["intermediate_size"], activation=s["hidden_act"],
                   max_position_embeddings=s["max_position_embeddings"], sinusoidal_pos_embds=s["layer_norm_eps"] < 1e-9)
    s = dict(s)
    if family == "mpnet":
        del s["type_vocab_size"]
    if family not in FIRST:
        del s["pad_token_id"]
    return cls(**s)


def class_of(family, head):
    return modern.class_of(family, head) if family in modern.CLASSES else getattr(transformers, FAMILIES[family] + head)


def fill(model, generator):
    """Random weights, with which hidden states depend on all of them"""
    for name, p in model.named_parameters():
        x = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        if p.dim() == 1:
            p.data = 0.2 * x + (1 if "orm" in name and name.endswith("weight") else 0)
        else:
            p.data = x * (1 if "embed" in name else 2 if "relative" in name else 1.5 / p.shape[1] ** 0.5)


def save(family, settings, folder, head="Model", dtype=torch.float32, seed=1):
    """head: "Model", or another class, whose names have a prefix and whose tensors are more"""
    model = class_of(family, head)(config_of(family, settings))
    fill(model, torch.Generator().manual_seed(seed))
    model.to(dtype).save_pretrained(folder)


def first_position(family, settings):
    return settings["pad_token_id"] + 1 if family in FIRST else 2 if family == "mpnet" else 0


def sequences(family, settings, rng):
    """ids and token types or None; among them the longest that is possible, and one with padding in it"""
    vocabulary, padding = settings["vocab_size"], first_position(family, settings) - 1
    longest = settings["max_position_embeddings"] - first_position(family, settings)
    for n in (longest, 1, min(longest, rng.randint(2, 12)), min(longest, rng.randint(2, 12))):
        ids = [rng.randrange(vocabulary) for _ in range(n)]
        types = [rng.randrange(settings["type_vocab_size"]) for _ in ids] if family in TYPES and n > 1 else None
        yield [x if x != padding or rng.random() < 0.5 else (x + 1) % vocabulary for x in ids], types


# ---- what is expected

def show(rows):
    return [" ".join(f"{float(x):.9g}" for x in row) for row in rows.detach()]


def precision(model):
    return modern.exact() if model.dtype == torch.float64 else contextlib.nullcontext()


def apply(model, ids, types):
    with torch.no_grad(), precision(model):
        x = torch.tensor([ids])
        types = {"token_type_ids": torch.tensor([types])} if types else {}
        return model(input_ids=x, attention_mask=torch.ones_like(x), output_attentions=True, **types)


def gradients(model, ids):
    x = torch.tensor([ids])
    model.zero_grad()
    with precision(model):
        model(input_ids=x, attention_mask=torch.ones_like(x)).last_hidden_state.double().square().sum().backward()
    return modern.of_file(model, {n: p.grad.double() for n, p in model.named_parameters()})


def nudged(model, generator):
    """The model in float32 with a third of its weights one float higher, a third one lower"""
    model = copy.deepcopy(model)
    for p in model.parameters():
        side = torch.randint(-1, 2, p.shape, generator=generator) * float("inf")
        p.data = torch.where(side.isnan(), p.data, torch.nextafter(p.data, side))
    return model


def gradient_error(single, ids, wanted, nudges):
    """The greatest error of the gradients in float32. With nudges the median of that of so many models besides, whose
    weights are off by a rounding: layers amplify the few roundings that matter, so the error of one model may be a tenth
    of that of the next."""
    generator = torch.Generator().manual_seed(1)
    errors = []
    for model in [single, *(nudged(single, generator) for _ in range(nudges))]:
        f32 = gradients(model, ids)
        errors.append(max(float((g - f32[n]).abs().max()) for n, g in wanted.items()))
    return statistics.median(errors)


def expect(family, folder, cases, every=1, texts=(), learned=None, nudges=0):
    """Writes expected.txt, with attention weights of the last case, and gradients of parameters whose names end in one
    of `learned`, or of all."""
    more = {} if family in ("distilbert", "modernbert", "gemma3_text") else {"add_pooling_layer": False}
    exact, single = (class_of(family, "Model").from_pretrained(folder, dtype=t, attn_implementation="eager", **more).eval()
                     for t in (torch.float64, torch.float32))
    modern.make_exact(exact)
    lines, worst = [], 0
    for ids, types in cases:
        y = apply(exact, ids, types)
        error = (apply(single, ids, types).last_hidden_state.double() - y.last_hidden_state).abs().max()
        worst = max(worst, float(error))
        lines.append("ids " + " ".join(map(str, ids)))
        if types:
            lines.append("types " + " ".join(map(str, types)))
        lines += show(y.last_hidden_state[0, ::every])
    ids = cases[-1][0]
    y = apply(exact, ids, None)
    layer, head = len(y.attentions) - 1, y.attentions[0].shape[1] - 1
    lines.append(f"weights {layer} {head} " + " ".join(map(str, ids)))
    lines += show(y.attentions[layer][0, head])
    ids = [x if x > 5 else x + 6 for x in cases[0][0]]  # without padding, of which PyTorch's embeddings have no gradient
    wanted = {n: g for n, g in gradients(exact, ids).items() if learned is None or n.endswith(learned)}
    if wanted:
        lines.append("gradient " + " ".join(map(str, ids)))
        lines.append(f"error {gradient_error(single, ids, wanted, nudges):.3g}")
    for name, g in wanted.items():
        lines += [f"of {name}", *show(g.reshape(1, -1))]
    if texts:
        model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float64})
        modern.make_exact(model[0].auto_model)
        for text in texts:
            ids = model.tokenizer(text)["input_ids"]
            lines += [f"text {text}", "ids " + " ".join(map(str, ids))]
            with modern.exact():
                lines += show(torch.tensor(model.encode([text], convert_to_numpy=True)))
        for a, b in zip(texts, texts[1:]):
            lines += [f"pair {a} | {b}", "ids " + " ".join(map(str, model.tokenizer(a, b)["input_ids"]))]
    (folder / "expected.txt").write_text("\n".join([f"f32 {worst:.3g}", f"every {every}", *lines]) + "\n", "utf-8")


# ---- tokenizers

def pieces():
    """A vocabulary of Unigram: letters, the starts of words, and some words with their scores"""
    words = ["▁the", "▁a", "▁is", "▁cat", "▁blue", "in", "er", "▁The", "▁sk"]
    return [(w, -3.0 - i / 4) for i, w in enumerate(words)] + [("▁", -4.5)] + [
        (c, -6.0 - i / 8) for i, c in enumerate(LETTERS + "T.,日本ä!")]


def fairseq(first):
    return [(t, 0.0) for t in first] + pieces() + [("<mask>", 0.0)]


def xlm_roberta(folder, sizes):
    vocab = fairseq(["<s>", "<pad>", "</s>", "<unk>"])
    transformers.XLMRobertaTokenizer(vocab=vocab, model_max_length=sizes).save_pretrained(folder)
    return len(vocab)


def camembert(folder, sizes):
    vocab = [*fairseq(["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>"])]
    vocab[4:4] = [("<unk>NOTUSED", -100.0), ("<s>", 0.0), ("</s>", 0.0)]
    transformers.CamembertTokenizer(vocab=vocab, model_max_length=sizes).save_pretrained(folder)
    return len(vocab)


def roberta(folder, sizes):
    """vocab.json and merges.txt, without tokenizer.json"""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.train_from_iterator(FACTS, trainers.BpeTrainer(vocab_size=290, show_progress=False,
                                                     initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(t.to_str())["model"]
    names = ["<s>", "<pad>", "</s>", "<unk>", *sorted(model["vocab"], key=model["vocab"].get), "<mask>"]
    (folder / "vocab.json").write_text(json.dumps({n: i for i, n in enumerate(names)}, ensure_ascii=False) + "\n", "utf-8")
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *(" ".join(m) for m in model["merges"])]) + "\n", "utf-8")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "RobertaTokenizer", "model_max_length": sizes}) + "\n")
    return len(names)


def wordpieces():
    return [*LETTERS, *("##" + c for c in LETTERS), "the", "is", "cat", "##ky", ".", ",", "!", "-", "日", "1"]


def distilbert(folder, sizes):
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *wordpieces()]
    transformers.DistilBertTokenizer(vocab={n: i for i, n in enumerate(names)}, model_max_length=sizes).save_pretrained(folder)
    return len(names)


def mpnet(folder, sizes):
    names = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", *wordpieces(), "<mask>"]
    transformers.MPNetTokenizer(vocab={n: i for i, n in enumerate(names)}, model_max_length=sizes).save_pretrained(folder)
    return len(names)


# ---- the folders

# family, tokenizer, longest sequence, hidden size, heads, hidden_act, head, dtype, states of every so many tokens
GOLDEN = {
    "bert_xlmr": ("bert", xlm_roberta, 16, 12, 3, "gelu", "Model", torch.float32, 1),
    "roberta": ("roberta", roberta, 20, 16, 2, "gelu", "ForMaskedLM", torch.float16, 1),
    "xlm_roberta": ("xlm-roberta", xlm_roberta, 18, 16, 4, "gelu", "Model", torch.bfloat16, 1),
    "camembert": ("camembert", camembert, 16, 12, 2, "relu", "ForMaskedLM", torch.float32, 1),
    "distilbert": ("distilbert", distilbert, 16, 32, 4, "gelu", "ForMaskedLM", torch.float16, 1),
    "mpnet": ("mpnet", mpnet, 150, 32, 4, "gelu_new", "Model", torch.float16, 10),
}


def new_folder(name):
    folder = HERE / "encoders" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def write(name):
    family, tokenizer, longest, hidden, heads, act, head, dtype, every = GOLDEN[name]
    folder = new_folder(name)
    settings = {"hidden_size": hidden, "num_attention_heads": heads, "num_hidden_layers": 2, "hidden_act": act,
                "intermediate_size": 2 * hidden if hidden < 32 else hidden, "layer_norm_eps": 1e-5, "type_vocab_size": 2,
                "pad_token_id": 1}
    settings["max_position_embeddings"] = longest + first_position(family, settings)
    settings["vocab_size"] = tokenizer(folder, longest) + 2  # rows of no token
    save(family, settings, folder, head, dtype)
    learned = ("relative_attention_bias.weight", "position_embeddings.weight", "layer.1.attention.output.dense.bias",
               "layer.1.attention.out_lin.bias")
    expect(family, folder, list(sequences(family, settings, random.Random(name))), every, TEXTS,
           learned[:1] if family == "mpnet" else learned)


def write_modern(name):
    family, tokenizer, head, dtype, _ = modern.GOLDEN[name]
    folder = new_folder(name)
    words = {modern.byte_level: FACTS, modern.wordpiece: wordpieces()}.get(tokenizer, pieces())
    settings = modern.golden_settings(name, tokenizer(words, folder, modern.LONGEST))
    save(family, settings, folder, head, dtype)
    expect(family, folder, list(sequences(family, settings, random.Random(name))), 1, TEXTS, modern.LEARNED)


if __name__ == "__main__":
    for name in GOLDEN:
        write(name)
    for name in modern.GOLDEN:
        write_modern(name)
