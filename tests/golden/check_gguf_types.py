#!/usr/bin/env python3
"""Compares attend with the package gguf: a random Llama in Q5, IQ4 and each type of blocks of 256, and one of mixed types.

    pip install gguf==0.19.* safetensors
    tests/golden/check_gguf_types.py [ATTEND]

`attend convert` writes each file as a folder of f32, whose weights have the bits of gguf's dequantize, with the rows of
queries and keys in the folder's order; the model then generates the same text from both, and a text from the file as it is.
Prints a line for each type; fails at the first difference.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy
from gguf import GGMLQuantizationType, GGUFWriter, quants
from gguf.constants import GGML_QUANT_SIZES
from safetensors.numpy import load_file

from make_gguf_blocks import FACTORS

ATTEND = sys.argv[1] if len(sys.argv) > 1 else "build/attend"
WIDTH, INNER, HEADS, KV_HEADS, LAYERS, TOKENS = 256, 512, 4, 2, 2, 64
HEAD = WIDTH // HEADS
SHAPES = {"attn_q": (WIDTH, WIDTH), "attn_k": (KV_HEADS * HEAD, WIDTH), "attn_v": (KV_HEADS * HEAD, WIDTH),
          "attn_output": (WIDTH, WIDTH), "ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}
THEIRS = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
          "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def blocks(random, name, shape):
    """Random blocks [rows, bytes] of a type, whose numbers are some hundredths"""
    numbers, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    x = random.integers(0, 256, (shape[0] * shape[1] // numbers, size), numpy.uint8)
    for at in FACTORS[name]:
        x[:, at:at + 2] = numpy.float16(1e-4 * (1 + random.random((len(x), 1)))).view(numpy.uint8)
    return x.reshape(shape[0], -1)


def write(path, random, type_of):
    """Writes the model; returns the numbers of its matrices by their names in a folder."""
    w, want = GGUFWriter(path, "llama"), {}
    for key, value in {"block_count": LAYERS, "context_length": 64, "embedding_length": WIDTH, "feed_forward_length": INNER,
                       "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS,
                       "rope.dimension_count": HEAD}.items():
        w.add_uint32(f"llama.{key}", value)
    w.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    w.add_token_list([chr(65 + i) for i in range(TOKENS - 1)] + ["AB"])
    w.add_token_types([1] * TOKENS)
    w.add_token_merges(["A B"])
    w.add_eos_token_id(0)

    def add(ours, theirs, shape, name):
        data = blocks(random, name, shape)
        kind = GGMLQuantizationType[name]
        w.add_tensor(ours, data, raw_dtype=kind)
        want[theirs] = quants.dequantize(data, kind)

    add("token_embd.weight", "model.embed_tokens.weight", (TOKENS, WIDTH), type_of(0))
    add("output.weight", "lm_head.weight", (TOKENS, WIDTH), type_of(1))
    w.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))
    for layer in range(LAYERS):
        for norm in "attn_norm", "ffn_norm":
            w.add_tensor(f"blk.{layer}.{norm}.weight", numpy.ones(WIDTH, numpy.float32))
        for i, (part, shape) in enumerate(SHAPES.items()):
            theirs = f"model.layers.{layer}.{THEIRS[part]}.weight"
            add(f"blk.{layer}.{part}.weight", theirs, shape, type_of(i + layer))
            if part in ("attn_q", "attn_k"):
                x = want[theirs]
                want[theirs] = x.reshape(-1, HEAD // 2, 2, WIDTH).swapaxes(1, 2).reshape(x.shape)
    for write_part in w.write_header_to_file, w.write_kv_data_to_file, w.write_tensors_to_file, w.close:
        write_part()
    return want


def main():
    names = list(FACTORS)
    for name in [*names, "mixed"]:
        with tempfile.TemporaryDirectory() as folder:
            file, out = str(pathlib.Path(folder) / "m.gguf"), str(pathlib.Path(folder) / "out")
            want = write(file, numpy.random.default_rng(1), (lambda i: names[i % len(names)]) if name == "mixed" else lambda i: name)
            subprocess.run([ATTEND, "convert", file, "-o", out, "--dtype", "f32"], check=True, stdout=subprocess.PIPE)
            weights = load_file(out + "/model.safetensors")
            for key, x in want.items():
                assert numpy.array_equal(weights[key].view(numpy.uint32), x.astype(numpy.float32).view(numpy.uint32)), (name, key)
            texts = [subprocess.run([ATTEND, "generate", "-m", m, "-n", "20", *more, "abc"], check=True, stdout=subprocess.PIPE).stdout
                     for m, more in ((file, ["--dtype", "f32"]), (out, []), (file, []))]
            assert texts[0] == texts[1] and texts[0] and texts[2], (name, texts)
            print(f"{name}: {len(want)} tensors have the bits of gguf's dequantize")


if __name__ == "__main__":
    main()
