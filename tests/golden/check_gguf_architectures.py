#!/usr/bin/env python3
"""Compares .gguf files that attend writes with llama.cpp: a random folder of each architecture becomes a file, whose logits in
llama.cpp are those of the folder in `transformers`, and a folder again, whose logits are the same. Files of types with k
have the types of tensors that llama.cpp chooses.

    pip install transformers==5.23.0 torch llama-cpp-python gguf
    tests/golden/check_gguf_architectures.py [ATTEND]

Prints the largest differences; fails if one is beyond 2e-3 of the largest logit: llama.cpp keeps keys and values in f16.
"""
import ctypes
import pathlib
import subprocess
import sys
import tempfile

import numpy
import llama_cpp
import torch
from gguf import GGUFReader
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

ATTEND = sys.argv[1] if len(sys.argv) > 1 else "build/attend"
LIKE_LLAMA = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96,
                  max_position_embeddings=128, pad_token_id=0)
LIKE_GPT2 = dict(n_embd=64, n_layer=2, n_head=4, n_positions=128)
MODELS = {
    "a gpt2": ("gpt2", LIKE_GPT2),
    "an untied gpt2": ("gpt2", LIKE_GPT2 | dict(n_inner=96, layer_norm_epsilon=1e-3, tie_word_embeddings=False)),
    "a llama": ("llama", LIKE_LLAMA),
    "a mistral": ("mistral", LIKE_LLAMA | dict(sliding_window=None, head_dim=16)),
    "an olmo2": ("olmo2", LIKE_LLAMA),
    "a Phi 3": ("phi3", LIKE_LLAMA | dict(sliding_window=127)),
    "a partial Phi 3": ("phi3", LIKE_LLAMA | dict(hidden_size=128, sliding_window=None, partial_rotary_factor=0.5)),
    "a qwen2": ("qwen2", LIKE_LLAMA | dict(tie_word_embeddings=True)),
    "a qwen3": ("qwen3", LIKE_LLAMA | dict(head_dim=32)),
}


def tokenizer():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    t = Tokenizer(models.BPE({"<|endoftext|>": 0} | {c: i + 1 for i, c in enumerate(alphabet)}, []))
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<|endoftext|>", eos_token="<|endoftext|>")


def write(folder, model_type, settings):
    fast = tokenizer()
    config = AutoConfig.for_model(model_type, vocab_size=len(fast), bos_token_id=0, eos_token_id=0, **settings)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * (0.2 if p.ndim > 1 else 0.3) + (0 if p.ndim > 1 else 0.5))
    model.save_pretrained(folder)
    fast.save_pretrained(folder)


def logits(folder, ids):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def convert(model, to, dtype="f32"):
    subprocess.run([ATTEND, "convert", str(model), "-o", str(to), "--dtype", dtype], check=True, stdout=subprocess.DEVNULL)


def types(file):
    return {t.name: t.tensor_type.name for t in GGUFReader(str(file)).tensors}


def check_types():
    wide = LIKE_LLAMA | dict(hidden_size=256, intermediate_size=512, num_hidden_layers=17)
    for model_type, settings in (("llama", wide), ("olmo2", wide), ("phi3", wide | dict(sliding_window=None)),
                                 ("gpt2", LIKE_GPT2 | dict(n_embd=256, n_layer=17))):
        with tempfile.TemporaryDirectory() as where:
            folder, file, ours, theirs = (pathlib.Path(where, n) for n in ("folder", "f32.gguf", "ours.gguf", "theirs.gguf"))
            write(folder, model_type, settings)
            convert(folder, file)
            for dtype, number in {"q4_k_s": 14, "q4_k_m": 15, "q5_k_s": 16, "q5_k_m": 17, "q6_k": 18}.items():
                options = llama_cpp.llama_model_quantize_default_params()
                options.ftype = number
                assert llama_cpp.llama_model_quantize(str(file).encode(), str(theirs).encode(), ctypes.byref(options)) == 0
                convert(folder, ours, dtype)
                assert types(ours) == types(theirs), (model_type, dtype)
                print(f"{model_type}, {dtype}: all types are the same", flush=True)


def main():
    torch.manual_seed(1)
    check_types()
    ids = numpy.random.default_rng(1).integers(1, 256, 40).tolist()
    for name, (model_type, settings) in MODELS.items():
        with tempfile.TemporaryDirectory() as where:
            folder, file, back = (pathlib.Path(where, n) for n in ("folder", "model.gguf", "back"))
            write(folder, model_type, settings)
            convert(folder, file)
            convert(file, back)
            want, again = logits(folder, ids), logits(back, ids)
            theirs = llama_cpp.Llama(str(file), n_ctx=64, logits_all=True, verbose=False)
            theirs.eval(ids)
            scale = numpy.abs(want).max()
            differences = [numpy.abs(x - want).max() / scale for x in (numpy.array(theirs.scores[:len(ids)]), again)]
            print(f"{name}: llama.cpp {differences[0]:.1e}, converted back {differences[1]:.1e}", flush=True)
            assert differences[0] < 2e-3 and differences[1] == 0


main()
