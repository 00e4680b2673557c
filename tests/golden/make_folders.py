#!/usr/bin/env python3
"""Writes folders.jsonl for tests/model/folders.c: folders whose settings change results, and what transformers and
sentence-transformers make of them.

    python3 make_folders.py

Lines by their "kind":
  tokens      a tokenizer of pipeline/ with a text replaced in it, tokenizer_config.json and the model's type; the ids of
              TEXTS, or with max_length of LONG, alone and as a pair
  similarity  the measure in config_sentence_transformers.json; the similarities of SENTENCES with each other
  plain       embeddings of SENTENCES by the folder without modules.json
  classify    settings of a ViT's config.json; the probabilities of its classes of the pipeline "image-classification"

Made with transformers 5.23.0, sentence-transformers 6.2.0, torch 2.15.0 on a CPU.
"""
import json
import pathlib
import tempfile

import numpy
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer, BertConfig, BertModel, ViTConfig, ViTForImageClassification, pipeline

from tiny_weights import numbers

HERE = pathlib.Path(__file__).parent
TEXTS = ["Hello  world <new> 12</s>", " the  nd end", "a<|im_end|> b <new>c", ""]
LONG = "The quick brown fox jumps over the lazy dog again and again."
SENTENCES = ["cab bed", "a fed cafe", "a b c d e f g h i j k l m n o p q r s t", ""]
NEW = {"content": "<new>", "lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": True}
lines = []


def add(kind, **values):
    lines.append(json.dumps({"kind": kind, **values}, ensure_ascii=False) + "\n")


def write(folder, name, value):
    pathlib.Path(folder, name).write_text(value if isinstance(value, str) else json.dumps(value))


def tokens(name, config, replace=("", ""), model_type="llama", max_length=0):
    text = (HERE / "pipeline" / f"{name}.json").read_text()
    assert not replace[0] or replace[0] in text, replace
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "tokenizer.json", text.replace(*replace) if replace[0] else text)
        write(folder, "tokenizer_config.json", config)
        write(folder, "config.json", {"model_type": model_type})
        tokenizer = AutoTokenizer.from_pretrained(folder)
    if max_length:
        how = dict(truncation=True, max_length=max_length)
        ids = [tokenizer(LONG, **how)["input_ids"], tokenizer(LONG, "one two three four five six", **how)["input_ids"]]
    else:
        ids = [tokenizer(t)["input_ids"] for t in TEXTS]
    add("tokens", file=name, replace=replace, config=config, model_type=model_type, max_length=max_length, ids=ids)


def all_tokens():
    size = {n: len(json.loads((HERE / "pipeline" / f"{n}.json").read_text())["model"]["vocab"]) for n in ("gpt2", "qwen", "llama2")}
    size = {n: max([s] + [t["id"] + 1 for t in json.loads((HERE / "pipeline" / f"{n}.json").read_text())["added_tokens"]])
            for n, s in size.items()}
    gpt2 = {"tokenizer_class": "GPT2Tokenizer"}
    prefix = ('"add_prefix_space":false', '"add_prefix_space":true')
    tokens("gpt2", gpt2)
    for spaced in True, False:
        tokens("gpt2", {**gpt2, "add_prefix_space": spaced})
        tokens("gpt2", {"tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": spaced}, prefix)
        tokens("gpt2", {"tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": spaced})
        tokens("qwen", {"tokenizer_class": "Qwen2Tokenizer", "add_prefix_space": spaced}, model_type="qwen2")
    tokens("gpt2", gpt2, prefix)
    tokens("gpt2", {"tokenizer_class": "PreTrainedTokenizerFast"}, prefix)
    for name, id in size.items():
        generic = {"tokenizer_class": "PreTrainedTokenizerFast"}
        tokens(name, {**generic, "added_tokens_decoder": {str(id): NEW}})
        tokens(name, {**generic, "added_tokens_decoder": {str(id): {**NEW, "lstrip": True, "rstrip": True}}})
        tokens(name, {**generic, "added_tokens_decoder": {str(id): {**NEW, "special": False, "normalized": True,
                                                                    "single_word": True}}})
        tokens(name, {**generic, "added_tokens_decoder": {str(id + 1): {**NEW, "content": "12"}, str(id): NEW}})
        tokens(name, {**generic, "pad_token": "he", "eos_token": {"__type": "AddedToken", **NEW, "content": "nd", "lstrip": True}})
        tokens(name, {**generic, "additional_special_tokens": ["he", "or"]})
        tokens(name, {**generic, "add_bos_token": True, "bos_token": "he", "model_max_length": 4})
    for side in "left", "right":
        tokens("gpt2", {**gpt2, "truncation_side": side}, max_length=7)
        tokens("llama2", {"tokenizer_class": "PreTrainedTokenizerFast", "truncation_side": side}, max_length=9)
    left = ('"truncation":null', '"truncation":{"direction": "Left", "max_length": 5, "strategy": "LongestFirst", "stride": 0}')
    tokens("gpt2", gpt2, left, max_length=7)
    tokens("gpt2", {**gpt2, "truncation_side": "right"}, left, max_length=7)


def sentence_folder(folder, modules, **more):
    """That of tests/fixtures/tiny_bert.h, tiny_sentence, or without modules.json"""
    config = BertConfig(vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
                        max_position_embeddings=16, type_vocab_size=2, layer_norm_eps=1e-5)
    model = BertModel(config, add_pooling_layer=False).eval()
    model.load_state_dict({k: numbers(k, v.shape) if v.is_floating_point() else v for k, v in model.state_dict().items()})
    model.save_pretrained(folder)
    words = [chr(97 + i) for i in range(26)] + ["##" + chr(97 + i) for i in range(9)]
    write(folder, "vocab.txt", "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + words) + "\n")
    write(folder, "tokenizer_config.json", {"do_lower_case": True, "model_max_length": 14,
                                            "tokenizer_class": "BertTokenizer", **more})
    if modules:
        names = [("", "Transformer"), ("1_Pooling", "Pooling")]
        write(folder, "modules.json", [{"idx": i, "name": str(i), "path": p, "type": f"sentence_transformers.models.{t}"}
                                       for i, (p, t) in enumerate(names)])
        pathlib.Path(folder, "1_Pooling").mkdir()
        write(folder, "1_Pooling/config.json", {"word_embedding_dimension": 12, "pooling_mode_mean_tokens": True})
        write(folder, "sentence_bert_config.json", {"max_seq_length": 12, "do_lower_case": False})


def similarities():
    for measure in None, "cosine", "dot", "euclidean", "manhattan":
        with tempfile.TemporaryDirectory() as folder:
            sentence_folder(folder, True)
            write(folder, "config_sentence_transformers.json", {"similarity_fn_name": measure})
            model = SentenceTransformer(folder, device="cpu")
            y = model.encode(SENTENCES)
            add("similarity", measure=measure, similarity=[[float(f"{x:.7g}") for x in row] for row in model.similarity(y, y)])
    for more in {}, {"truncation_side": "left"}:
        with tempfile.TemporaryDirectory() as folder:
            sentence_folder(folder, False, **more)
            model = SentenceTransformer(folder, device="cpu")
            add("plain", config=more, embeddings=[[float(f"{x:.7g}") for x in row] for row in model.encode(SENTENCES)])


def classes():
    for labels, more in (5, {}), (5, {"problem_type": "single_label_classification"}), (1, {}), (2, {}), \
            (5, {"problem_type": "multi_label_classification"}), \
            (1, {"problem_type": "multi_label_classification"}):
        config = ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_labels=labels,
                           intermediate_size=24, image_size=12, patch_size=4)
        with tempfile.TemporaryDirectory() as folder:
            ViTForImageClassification(config).save_pretrained(folder)
            old = load_file(folder + "/model.safetensors")
            save_file({k: numbers(k, v.shape) for k, v in old.items()}, folder + "/model.safetensors", {"format": "pt"})
            saved = json.loads(pathlib.Path(folder, "config.json").read_text())
            write(folder, "config.json", {**saved, **more})
            write(folder, "preprocessor_config.json", {"image_processor_type": "ViTImageProcessor",
                                                       "size": {"height": 12, "width": 12}})
            pixels = (numpy.arange(12 * 12 * 3) * 37 % 256).astype(numpy.uint8).reshape(12, 12, 3)
            found = pipeline("image-classification", model=folder, top_k=None)(Image.fromarray(pixels))
        by_label = {f["label"]: f["score"] for f in found}
        add("classify", labels=labels, config=more,
            probabilities=[float(f"{by_label[f'LABEL_{i}']:.7g}") for i in range(labels)])


all_tokens()
similarities()
classes()
(HERE / "folders.jsonl").write_text("".join(lines))
