#!/usr/bin/env python3
"""Writes tiny_marian.jsonl: what transformers makes in fp32 of tiny models of the class MarianMTModel, whose weights
follow from a formula. One model a line: its config, whether its file has final_logits_bias, logits of teacher-forced
decoding, and searches: how, for each source the token ids that were found, the best first, with their scores, which
greedy search has not, and of some a forced beginning of the target. The last line is a model with a tokenizer: texts and their translations.

    python3 make_tiny_marian.py

Made with transformers 5.23.0, torch 2.15.0 on a CPU. tests/fixtures/tiny_marian.h makes the same models.
"""
import json
import pathlib
import tempfile

import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer

from make_marian import make_folder
from tiny_weights import numbers

TOKENS = 30
SIZES = dict(d_model=24, encoder_layers=2, decoder_layers=3, encoder_attention_heads=3, decoder_attention_heads=4,
             encoder_ffn_dim=20, decoder_ffn_dim=28, max_position_embeddings=16, eos_token_id=0)
SOURCES = [[5, 9, 11, 7, 0], [0], [3, 29, 28, 1, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 0]]
TARGETS = [[3, 4, 20], [25], [1, 2, 24, 5, 6, 21, 8]]  # behind the start

# config, final_logits_bias
MODELS = [
    ({"activation_function": "swish", "scale_embedding": True}, True),
    ({"activation_function": "relu", "scale_embedding": False}, False),
    ({"activation_function": "gelu", "share_encoder_decoder_embeddings": False, "decoder_vocab_size": 26,
      "tie_word_embeddings": False}, True),
    ({"activation_function": "gelu_new", "share_encoder_decoder_embeddings": False, "decoder_vocab_size": 26,
      "scale_embedding": True}, False),
    ({"activation_function": "tanh", "tie_word_embeddings": False}, True),
]
PLAIN = dict(beam=1, n_best=1, min_tokens=0, max_tokens=12, length_penalty=1.0, early_stopping=False,
             renormalize=False, force_end=True, banned=[])
SEARCHES = [PLAIN | s for s in (
    {},
    {"beam": 4, "n_best": 4},
    {"beam": 4, "n_best": 2, "length_penalty": 0.0},
    {"beam": 4, "n_best": 4, "length_penalty": 2.5, "early_stopping": True},
    {"beam": 3, "n_best": 3, "length_penalty": -1.0},
    {"min_tokens": 9},
    {"beam": 4, "n_best": 4, "min_tokens": 9},
    {"beam": 4, "n_best": 4, "min_tokens": 6, "renormalize": True, "banned": [4, 26]},
    {"beam": 4, "n_best": 4, "banned": [4, 26]},
    {"banned": [4, 26]},
    {"force_end": False, "max_tokens": 3},
    {"beam": 4, "n_best": 4, "force_end": False, "max_tokens": 3},
    {"beam": 4, "n_best": 4, "max_tokens": 1},
    {"beam": 4, "n_best": 4, "max_tokens": 2},
    {"beam": 12, "n_best": 12, "max_tokens": 7},
)]
PREFIXES = [[7], [], [4, 25, 11, 5]]  # of each source
FORCED = [PLAIN | s for s in (
    {},
    {"beam": 4, "n_best": 4},
    {"beam": 4, "n_best": 4, "length_penalty": 2.5, "early_stopping": True},
    {"beam": 3, "n_best": 3, "length_penalty": -1.0, "min_tokens": 9, "banned": [4, 26]},
    {"beam": 4, "n_best": 4, "max_tokens": 5},
    {"force_end": False, "max_tokens": 6},
)]
LINES = ["Hello world, this is a test.", "Ein Hund läuft im Schnee.", "a", "東京タワー"]


def make_model(change, with_bias, tokens=TOKENS):
    config = SIZES | {"vocab_size": tokens} | change
    config["pad_token_id"] = config["decoder_start_token_id"] = config.get("decoder_vocab_size", tokens) - 1
    model = MarianMTModel(MarianConfig(**config)).eval()
    share, tie = config.get("share_encoder_decoder_embeddings", True), config.get("tie_word_embeddings", True)

    def value(name, old):
        if "embed_positions" in name or (name == "final_logits_bias" and not with_bias):
            return old
        if tie and name == "lm_head.weight":
            name = "model.decoder.embed_tokens.weight"
        if share and name.endswith("embed_tokens.weight"):
            name = "model.shared.weight"
        return numbers(name, tuple(old.shape))

    model.load_state_dict({k: value(k, v) for k, v in model.state_dict().items()})
    model.generation_config = GenerationConfig()  # else what a search leaves out would come from the config
    return config, model


def logits(model):
    start, rows = model.config.decoder_start_token_id, []
    for source, target in zip(SOURCES, TARGETS):
        with torch.no_grad():
            y = model(torch.tensor([source]), decoder_input_ids=torch.tensor([[start] + target])).logits[0]
        rows += [[float(f"{float(x):.7g}") for x in row] for row in y]
    return rows


def search(model, source, s, prefix=()):
    c = model.config
    how = GenerationConfig(
        num_beams=s["beam"], num_return_sequences=s["n_best"], min_length=s["min_tokens"],
        max_new_tokens=s["max_tokens"] - len(prefix), length_penalty=s["length_penalty"], early_stopping=s["early_stopping"],
        renormalize_logits=s["renormalize"], forced_eos_token_id=0 if s["force_end"] else None,
        bad_words_ids=[[b] for b in s["banned"]] or None, eos_token_id=0, pad_token_id=c.pad_token_id,
        decoder_start_token_id=c.decoder_start_token_id, do_sample=False, return_dict_in_generate=True,
        output_scores=True)
    found = model.generate(input_ids=torch.tensor([source]), generation_config=how,
                           decoder_input_ids=torch.tensor([[c.decoder_start_token_id, *prefix]]))
    result = []
    for i, ids in enumerate(found.sequences[:, 1:].tolist()):
        ids = ids[:ids.index(0)] if 0 in ids else ids
        score = float(f"{float(found.sequences_scores[i]):.8g}") if s["beam"] > 1 else None
        if score is None or score > -1e6:  # less is a row that stands for none
            result.append({"ids": ids, "score": score})
    return result


def translate(model, folder):
    """Texts: greedy and the best of 4 beams, <pad> banned."""
    tokenizer = MarianTokenizer.from_pretrained(folder)
    rows = []
    for line in LINES:
        row = {"source": line}
        for name, beam in ("greedy", 1), ("beam", 4):
            how = PLAIN | {"beam": beam, "banned": [model.config.pad_token_id]}
            ids = search(model, tokenizer(line).input_ids, how)[0]["ids"]
            row[name] = tokenizer.decode(ids, skip_special_tokens=True, use_source_tokenizer=False)
        rows.append(row)
    return rows


def main():
    lines = []
    for i, (change, with_bias) in enumerate(MODELS):
        config, model = make_model(change, with_bias)
        hows = SEARCHES if i == 0 else SEARCHES[:2]
        lines.append({"config": config, "bias": with_bias, "logits": logits(model), "searches": [
            {"how": s, "found": [search(model, source, s) for source in SOURCES]} for s in hows] + [
            {"how": s, "prefixes": PREFIXES, "found": [search(model, *a) for a in zip(SOURCES, [s] * 3, PREFIXES)]}
            for s in (FORCED if i == 0 else FORCED[:2])]})
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        config, model = make_model(MODELS[0][0], True, make_folder(folder))
        lines.append({"config": config, "bias": True, "texts": translate(model, folder)})
    (pathlib.Path(__file__).parent / "tiny_marian.jsonl").write_text(
        "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


if __name__ == "__main__":
    main()
