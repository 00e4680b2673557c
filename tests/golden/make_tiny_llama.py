#!/usr/bin/env python3
"""Writes tiny_llama.txt, as tiny_language.py describes: tiny models like Llama, whose weights follow from a formula, by
transformers in float64.

    python3 make_tiny_llama.py

tiny_llama/ is the one named qwen3 as a folder.

Made with transformers 5.23.0, torch 2.15.0 on a CPU. tests/fixtures/tiny_llama.h makes the same weights.
"""
import pathlib

import torch
from tokenizers import Tokenizer, decoders, models
from transformers import AutoConfig, AutoModelForCausalLM

from tiny_language import lines, set_weights

HERE = pathlib.Path(__file__).parent

BASE = dict(vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            intermediate_size=24, max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=False,
            attn_implementation="eager", dtype="float64")
MODELS = {
    "llama": ("llama", {}),
    "llama3": ("llama", dict(tie_word_embeddings=True, rope_parameters=dict(
        rope_type="llama3", rope_theta=100.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=16))),
    "linear": ("llama", dict(attention_bias=True, mlp_bias=True, rope_parameters=dict(
        rope_type="linear", rope_theta=1000.0, factor=4.0))),
    "mistral": ("mistral", dict(sliding_window=4, head_dim=6)),
    "qwen2": ("qwen2", dict(tie_word_embeddings=True, use_sliding_window=False)),
    "qwen3": ("qwen3", dict(head_dim=8, use_sliding_window=False)),
    "olmo2": ("olmo2", {}),
    "phi3": ("phi3", dict(sliding_window=6, rope_parameters=dict(
        rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.5), pad_token_id=0)),
    "mistral_tied": ("mistral", dict(tie_word_embeddings=True, sliding_window=None, num_key_value_heads=1)),
    "qwen2_untied": ("qwen2", dict(use_sliding_window=False, num_key_value_heads=4)),
    "qwen3_tied": ("qwen3", dict(head_dim=128, tie_word_embeddings=True, use_sliding_window=False, num_key_value_heads=4)),
    "qwen2_window": ("qwen2", dict(tie_word_embeddings=True, use_sliding_window=True, sliding_window=4, max_window_layers=0)),
    "phi3_outer": ("phi3", dict(partial_rotary_factor=0.5, rope_parameters=dict(rope_type="default", rope_theta=100.0),
                                pad_token_id=0)),
}


def write_folder(model):
    """tiny_llama/: the model as transformers writes it, with letters as tokens, for examples/generate.c"""
    vocab = {c: i for i, c in enumerate("abcdefghijklmnopqrst")}
    tokenizer = Tokenizer(models.BPE(vocab, []))
    tokenizer.decoder = decoders.Fuse()
    model.config.max_position_embeddings = 32
    model.float().save_pretrained(HERE / "tiny_llama")
    (HERE / "tiny_llama/generation_config.json").unlink()
    tokenizer.save(str(HERE / "tiny_llama/tokenizer.json"))
    with torch.no_grad():
        ids = tokenizer.encode("bdcab").ids
        for _ in range(24):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    print(tokenizer.decode(ids), "is what examples/generate.c prints of it")


def main():
    out = []
    for name, (kind, more) in MODELS.items():
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **{**BASE, **more})).double().eval()
        set_weights(model)
        out += lines(name, model)
        if name == "qwen3":
            write_folder(model)
    (HERE / "tiny_llama.txt").write_text("\n".join(out) + "\n")


main()
