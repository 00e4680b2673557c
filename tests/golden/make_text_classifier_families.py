#!/usr/bin/env python3
"""Writes the folders of classifiers/: tiny text classifiers of each family that `transformers` saved, with their
tokenizers, and what it computes with them in float64.

    tests/golden/make_text_classifier_families.py

classifiers/NAME has the files of the model, and expected.jsonl, whose first line has `f32`, the greatest error of
transformers' own logits in float32, `labels`, `max_tokens`, and of sentence-transformers' CrossEncoder its activation.
Each other line has a text, maybe the second one of a pair, ids, token types or null, logits, and the scores of
CrossEncoder in float64.

check_text_classifier_families.py makes many more such folders. Made with transformers 5.23.0, sentence-transformers
6.2.0, torch 2.15.0 on a CPU; tests/classifier/text_classifier_families.c reads them.
"""
import json
import pathlib
import random
import shutil

import torch
import transformers
from sentence_transformers import CrossEncoder

import modern_encoders as modern
from make_encoder_families import (FACTS, HERE, TYPES, camembert, class_of, config_of, distilbert, fill, first_position, mpnet, precision,
                                   roberta, wordpieces, xlm_roberta)


def byte_level(folder, sizes):
    return modern.byte_level(FACTS, folder, sizes)


def bert(folder, sizes):
    """A BERT tokenizer, whose pairs have two types"""
    return modern.wordpiece(wordpieces(), folder, sizes)


TOKENIZERS = {"bert": xlm_roberta, "roberta": roberta, "xlm-roberta": xlm_roberta, "camembert": camembert,
              "distilbert": distilbert, "mpnet": mpnet, "modernbert": byte_level, "nomic_bert": bert}
LABELS = {1: {0: "LABEL_0"}, 2: {0: "no", 1: "yes"}, 3: {0: "contradiction", 1: "entailment", 2: "neutral"},
          5: {i: f"LABEL_{i}" for i in range(5)}}


def save(family, settings, labels, folder, layout, dtype=torch.float32, seed=1):
    """layout: "plain"; "older" and "newer" with the activation of a CrossEncoder in config.json; "modules" as
    CrossEncoder saves it"""
    config = config_of(family, settings)
    config.id2label = dict(LABELS[labels])
    config.label2id = {name: i for i, name in config.id2label.items()}
    if layout == "older":
        config.sbert_ce_default_activation_function = "torch.nn.modules.linear.Identity"
    if layout == "newer":
        config.sentence_transformers = {"activation_fn": "torch.nn.modules.activation.Sigmoid", "version": "5.1.0"}
    model = class_of(family, "ForSequenceClassification")(config)
    fill(model, torch.Generator().manual_seed(seed))
    model.to(dtype).save_pretrained(folder)
    if layout == "modules":
        saved = CrossEncoder(str(folder), device="cpu", model_kwargs={"dtype": dtype},
                             activation_fn=torch.nn.Identity() if seed % 2 else None)
        saved.save_pretrained(str(folder), create_model_card=False)


def texts(rng, n, longest):
    """Texts and pairs of all lengths, some longer than the model"""
    words = " ".join(FACTS).split()
    def text():
        at, some = rng.randrange(len(words)), rng.choice([0, 1, 3, longest // 4, longest])
        return " ".join(words[at:at + some])
    return [(text(), text() if i % 4 else None) for i in range(n)]


def expect(family, folder, cases):
    cls = class_of(family, "ForSequenceClassification")
    exact, single = (cls.from_pretrained(folder, dtype=t, attn_implementation="eager").eval()
                     for t in (torch.float64, torch.float32))
    modern.make_exact(exact.base_model)
    scorer = CrossEncoder(str(folder), device="cpu", model_kwargs={"dtype": torch.float64})
    longest = scorer.max_seq_length - (0 if scorer.max_seq_length < exact.config.max_position_embeddings else
                                       first_position(family, {"pad_token_id": exact.config.pad_token_id}))
    lines, worst = [], 0
    for a, b in cases:
        tokens = scorer.tokenizer([a], None if b is None else [b], truncation="longest_first", max_length=longest,
                                  return_tensors="pt")
        with torch.no_grad():
            with precision(exact):
                y = exact(**tokens).logits[0]
            rough = single(**tokens).logits[0]
        worst = max(worst, float((rough.double() - y).abs().max()))
        lines.append({"text": a, "pair": b, "ids": tokens["input_ids"][0].tolist(),
                      "types": tokens["token_type_ids"][0].tolist() if "token_type_ids" in tokens else None,
                      "logits": y.tolist(), "scores": scorer.activation_fn(y).tolist()})
    head = {"f32": worst, "labels": exact.config.num_labels, "max_tokens": longest,
            "activation": type(scorer.activation_fn).__name__}
    (folder / "expected.jsonl").write_text("".join(json.dumps(x, ensure_ascii=False) + "\n" for x in [head, *lines]), "utf-8")


# Settings of families with rotary positions
MODERN = {"bases": (1000.0, 100.0), "window": 8, "layer_types": ["full_attention", "sliding_attention"], "more": {}}
# family, tokenizer, longest pair, hidden size, heads, labels, layout, dtype, settings that the others do not have
GOLDEN = {
    "bert": ("bert", bert, 16, 12, 3, 1, "modules", torch.float32, {}),
    "bert_xlmr": ("bert", xlm_roberta, 16, 12, 3, 3, "plain", torch.float32, {}),
    "roberta": ("roberta", roberta, 20, 16, 2, 3, "plain", torch.float16, {}),
    "xlm_roberta": ("xlm-roberta", xlm_roberta, 18, 16, 4, 1, "older", torch.bfloat16, {}),
    "distilbert": ("distilbert", distilbert, 16, 32, 4, 2, "plain", torch.float16, {}),
    "mpnet": ("mpnet", mpnet, 24, 16, 4, 1, "newer", torch.float16, {}),
    "modernbert": ("modernbert", byte_level, 24, 16, 2, 2, "plain", torch.bfloat16, MODERN),
    "modernbert_mean": ("modernbert", byte_level, 24, 16, 2, 1, "newer", torch.float16,
                        {**MODERN, "more": {"classifier_pooling": "mean", "classifier_bias": True, "norm_bias": True,
                                            "classifier_activation": "relu"}}),
    "nomic_bert": ("nomic_bert", bert, 20, 16, 2, 3, "plain", torch.bfloat16, MODERN),
}


def write(name):
    family, tokenizer, longest, hidden, heads, labels, layout, dtype, more = GOLDEN[name]
    folder = HERE / "classifiers" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    settings = {"hidden_size": hidden, "num_attention_heads": heads, "num_hidden_layers": 2, "hidden_act": "gelu",
                "intermediate_size": hidden, "layer_norm_eps": 1e-5, "type_vocab_size": 2 if family in TYPES else 1,
                "pad_token_id": 1, **more}
    settings["max_position_embeddings"] = longest + first_position(family, settings)
    settings["vocab_size"] = tokenizer(folder, longest) + 2  # rows of no token
    save(family, settings, labels, folder, layout, dtype)
    rng = random.Random(name)
    expect(family, folder, texts(rng, 6, longest) + [("The sky is blue.", "a cat"), ("", "")])


if __name__ == "__main__":
    for name in GOLDEN:
        write(name)
