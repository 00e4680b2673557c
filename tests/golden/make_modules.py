#!/usr/bin/env python3
"""Writes modules.jsonl for tests/sentence/modules.c: folders of sentence-transformers with each module, and embeddings.

    python3 make_modules.py

The encoder is the tiny BERT of make_tiny_bert.py, weights of modules are those of tiny_weights.py. A line is a folder:
  files      what sentence-transformers has saved besides the encoder: names and JSON
  options    of encode(): prompt, prompt_name, truncate_dim
  vectors    of TEXTS, in float64; with truncate_dim and a Normalize at the end they are normalized
  error      the largest difference of the package's own float32 from these
  tokens     vectors of the tokens of TEXTS[0], where modules change these

Made with sentence-transformers 6.2.0, transformers 5.23.0, torch 2.15.0 on a CPU.
"""
import json
import pathlib
import tempfile

import numpy
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Dropout, LayerNorm, Pooling
from transformers import BertTokenizer

from make_tiny_bert import tiny
from make_token_embeddings import VOCABULARY
from tiny_weights import numbers

TEXTS = ["cab bed", "fig", "a b c d e f g h i j k l m n o p q r s t", ""]  # the third is too long
MODES = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
FLAGS = ["cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"]
OLD = {"sentence_transformers.base.modules.transformer.Transformer": "sentence_transformers.models.Transformer",
       "sentence_transformers.base.modules.dense.Dense": "sentence_transformers.models.Dense",
       "sentence_transformers.base.modules.normalize.Normalize": "sentence_transformers.models.Normalize",
       "sentence_transformers.sentence_transformer.modules.pooling.Pooling": "sentence_transformers.models.Pooling",
       "sentence_transformers.sentence_transformer.modules.layer_norm.LayerNorm": "sentence_transformers.models.LayerNorm",
       "sentence_transformers.sentence_transformer.modules.dropout.Dropout": "sentence_transformers.models.Dropout"}
PROMPTS = {"query": "ab c: ", "passage": "d e ", "none": ""}
NAMES = ["config_sentence_transformers.json", "modules.json"]
lines = []


def set_weights(module):
    module.load_state_dict({k: numbers(k, v.shape) for k, v in module.state_dict().items()})
    return module


def dense(n_in, n_out, act=None, **options):
    return set_weights(Dense(n_in, n_out, activation_function=act or torch.nn.Tanh(), **options))


def norm(n):
    return set_weights(LayerNorm(n))


def make_older(folder):
    """The names of versions before 5.4: classes in sentence_transformers.models, flags of a Pooling."""
    path = folder / "modules.json"
    modules = json.loads(path.read_text())
    for m in modules:
        m["type"] = OLD[m["type"]]
        if m["type"].endswith("Pooling"):
            config = folder / m["path"] / "config.json"
            new = json.loads(config.read_text())
            mode = new["pooling_mode"]
            old = {f"pooling_mode_{f}": n == mode or n in mode and not isinstance(mode, str) for f, n in zip(FLAGS, MODES)}
            config.write_text(json.dumps({"word_embedding_dimension": new["embedding_dimension"], **old,
                                          "include_prompt": new["include_prompt"]}))
    path.write_text(json.dumps(modules))


def encode(folder, dtype, options):
    model = SentenceTransformer(str(folder), device="cpu").to(dtype)
    cut = options.get("truncate_dim") or model.truncate_dim
    unit = isinstance(model[-1], Normalize) and model[-1].module_output_name == "sentence_embedding"
    vectors = model.encode(TEXTS, **options, normalize_embeddings=bool(cut and unit))
    tokens = model.encode(TEXTS[:1], output_value="token_embeddings", prompt="")[0]
    return vectors, tokens.numpy()


def show(rows):
    return [[float(f"{x:.9g}") for x in row] for row in rows]


def variant(*modules, older=False, prompts=None, default=None, dims=None, similarity=None, **options):
    with tempfile.TemporaryDirectory() as name:
        base, folder = pathlib.Path(name) / "base", pathlib.Path(name) / "model"
        base.mkdir()
        (base / "vocab.txt").write_text("".join(token + "\n" for token in VOCABULARY))
        tiny("gelu").save_pretrained(base)
        BertTokenizer(str(base / "vocab.txt"), do_lower_case=True).save_pretrained(base)
        model = SentenceTransformer(modules=[Transformer(str(base), max_seq_length=12), *modules], device="cpu",
                                    prompts=prompts, default_prompt_name=default, truncate_dim=dims,
                                    similarity_fn_name=similarity)
        model.save_pretrained(str(folder), create_model_card=False)
        if older:
            make_older(folder)
        paths = [folder / n for n in NAMES] + sorted(folder.glob("[0-9]*_*/config.json"))
        files = {str(p.relative_to(folder)): json.loads(p.read_text()) for p in paths}
        files["config_sentence_transformers.json"].pop("__version__", None)
        exact, tokens = encode(folder, torch.float64, options)
        single, _ = encode(folder, torch.float32, options)
        line = {"files": files, "options": options, "error": float(numpy.abs(single - exact).max()), "vectors": show(exact)}
        if any(getattr(m, "module_output_name", "") == "token_embeddings" for m in modules):
            line["tokens"] = show(tokens)
        lines.append(json.dumps(line, separators=(",", ":")) + "\n")


def all_variants():
    for i, mode in enumerate(MODES):
        variant(Pooling(12, mode), *([Normalize()] if i % 2 else []), older=i < 3)
    variant(Pooling(12, tuple(MODES)), older=True)
    variant(Pooling(12, ("lasttoken", "cls", "cls")), Normalize())
    variant(Pooling(12, "mean"), dense(12, 7), Normalize(), older=True)
    variant(Pooling(12, ("mean", "max")), dense(24, 5, torch.nn.ReLU(), bias=False))
    variant(Pooling(12, "cls"), dense(12, 5, torch.nn.GELU()), dense(5, 6, torch.nn.SiLU()), older=True)
    variant(Pooling(12, "cls"), dense(12, 6, torch.nn.Sigmoid()), norm(6))
    variant(Pooling(12, "mean"), dense(12, 20, torch.nn.Identity(), bias=False),
            dense(20, 12, torch.nn.Identity(), bias=False), Normalize())
    variant(Pooling(12, "mean"), dense(12, 12, use_residual=True))
    variant(Pooling(12, "mean"), dense(12, 8, torch.nn.ReLU(), use_residual=True), Normalize())
    variant(Pooling(12, "weightedmean"), norm(12), older=True)
    variant(Pooling(12, "max"), norm(12), dense(12, 5), Normalize())
    variant(Pooling(12, "mean"), Normalize(), dense(12, 9))
    variant(dense(12, 4, module_input_name="token_embeddings"), Pooling(4, ("mean", "lasttoken")), norm(8))
    variant(Normalize(module_input_name="token_embeddings"), Normalize(), Pooling(12, "max"))
    variant(Pooling(12, "mean"), Normalize(), prompts=PROMPTS, default="passage")
    variant(Pooling(12, tuple(MODES), include_prompt=False), older=True, prompts=PROMPTS, prompt_name="query")
    variant(Pooling(12, ("weightedmean", "cls")), prompts=PROMPTS, default="query", prompt="hi a: ")
    variant(Pooling(12, ("mean", "cls"), include_prompt=False), Normalize(), prompts=PROMPTS, default="query", prompt="")
    variant(Pooling(12, "mean", include_prompt=False), dense(12, 6), Normalize(), prompt="a b c d e f g h i j k l m n")
    variant(Pooling(12, "mean"), Normalize(), dims=5, similarity="dot")
    variant(Pooling(12, "mean"), dense(12, 8), dims=3, similarity="euclidean")
    variant(Pooling(12, "mean"), Normalize(), dense(12, 8), Normalize(), dims=4, truncate_dim=7)
    variant(Pooling(12, "mean"), Dropout(0.3), dense(12, 6), Normalize(), Dropout(), older=True)


if __name__ == "__main__":
    all_variants()
    (pathlib.Path(__file__).parent / "modules.jsonl").write_text("".join(lines))
    print(len(lines), "folders; largest error of float32:", max(json.loads(x)["error"] for x in lines))
