#!/usr/bin/env python3
"""A random Llama as .gguf files of quantized types, with llama.cpp (llama-cpp-python): one JSON object a type, with the bytes of
both sides' files, the KL divergence of next tokens from f32, of each file by each side, and the tokens a second of one file.

    quantized.py [--rounds N] [--types Q4_K_M,...]

The model has a width of 1,024 and inner layers of 2,816, so that its rows are in blocks of 256: build/peers/random-llama, made
once. bench_language and attend are those of the build folder.
"""
import argparse
import json
import os
import pathlib
import subprocess

import numpy
from common import BUILD, CACHE
from safetensors.numpy import save_file

WIDTH, INNER, HEADS, KV_HEADS, LAYERS, VOCABULARY, IDS = 1024, 2816, 16, 4, 8, 4096, 1024
FOLDER = CACHE / "random-llama"
# name: of attend convert, llama.cpp's number of the file's type
TYPES = {"Q4_K_M": ("q4_k_m", 15), "Q5_K_M": ("q5_k_m", 17), "Q6_K": ("q6_k", 18), "Q8_0": ("q8_0", 7), "Q5_0": ("q5_0", 8),
         "Q4_0": ("q4_0", 2)}


def write_tokenizer():
    """Bytes, then pairs and triples of letters"""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    tokens = ["<|end|>", "<|begin|>"] + [chr(b) for b in kept] + [chr(256 + i) for i in range(256 - len(kept))]
    letters, merges = "abcdefghijklmnopqrstuvwxyz", []
    for left in [*letters, *(a + b for a in letters for b in letters)]:
        merges += [[left, right] for right in letters]
    merges = merges[:VOCABULARY - len(tokens)]
    tokens += [left + right for left, right in merges]
    special = [{"id": i, "content": tokens[i], "special": True} for i in range(2)]
    (FOLDER / "tokenizer.json").write_text(json.dumps({
        "added_tokens": special, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}]},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges}}))
    (FOLDER / "tokenizer_config.json").write_text(json.dumps({"bos_token": tokens[1], "eos_token": tokens[0]}))


def write_model():
    random, weights = numpy.random.default_rng(1), {}

    def add(name, rows, columns):
        """Weights of heavy tails, as those of trained models; their size keeps that of activations"""
        weights[f"{name}.weight"] = (random.standard_t(6, (rows, columns)) * (0.8 / columns**0.5)).astype(numpy.float32)

    add("model.embed_tokens", VOCABULARY, WIDTH)
    add("lm_head", VOCABULARY, WIDTH)
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        for name, rows, columns in (("q", WIDTH, WIDTH), ("k", WIDTH // HEADS * KV_HEADS, WIDTH),
                                    ("v", WIDTH // HEADS * KV_HEADS, WIDTH), ("o", WIDTH, WIDTH)):
            add(f"{prefix}.self_attn.{name}_proj", rows, columns)
        for name, rows, columns in ("gate", INNER, WIDTH), ("up", INNER, WIDTH), ("down", WIDTH, INNER):
            add(f"{prefix}.mlp.{name}_proj", rows, columns)
        for norm in "input_layernorm", "post_attention_layernorm":
            weights[f"{prefix}.{norm}.weight"] = numpy.ones(WIDTH, numpy.float32)
    weights["model.norm.weight"] = numpy.full(WIDTH, 3, numpy.float32)  # so that some tokens are far more probable
    save_file(weights, FOLDER / "model.safetensors")
    (FOLDER / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH, "intermediate_size": INNER,
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "num_hidden_layers": LAYERS, "hidden_act": "silu",
        "vocab_size": VOCABULARY, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "bos_token_id": 1, "eos_token_id": 0, "tie_word_embeddings": False, "torch_dtype": "float32"}))


def attend(*arguments):
    subprocess.run([BUILD / "attend", *arguments], check=True, stdout=subprocess.DEVNULL)


def file_of(name):
    """Our file of a type, made once"""
    out = CACHE / f"random-llama-{name}.gguf"
    if not out.exists():
        attend("convert", FOLDER, "-o", out, "--dtype", name)
    return out


def their_file(name, number):
    """llama.cpp's file of a type, from ours of f32"""
    import llama_cpp
    out = CACHE / f"random-llama-{name}-llamacpp.gguf"
    if not out.exists():
        params = llama_cpp.llama_model_quantize_default_params()
        params.ftype, params.nthread = number, len(os.sched_getaffinity(0))
        assert not llama_cpp.llama_model_quantize(os.fsencode(file_of("f32")), os.fsencode(out), params)
    return out


def log_probabilities(logits):
    x = logits.astype(numpy.float64)
    x -= x.max(-1, keepdims=True)
    return x - numpy.log(numpy.exp(x).sum(-1, keepdims=True))


def ours(model, ids):
    out = CACHE / "logits.f32"
    subprocess.run([BUILD / "bench/bench_language", model, "logits", out], input=" ".join(map(str, ids)), text=True, check=True)
    return log_probabilities(numpy.fromfile(out, numpy.float32).reshape(len(ids), -1))


def theirs(file, ids):
    import llama_cpp
    model = llama_cpp.Llama(str(file), n_ctx=len(ids), n_batch=len(ids), n_threads=len(os.sched_getaffinity(0)), logits_all=True,
                            verbose=False)
    model.eval(ids)
    return log_probabilities(model.scores[:len(ids)])


def divergence(reference, x):
    return float((numpy.exp(reference) * (reference - x)).sum(-1).mean())


def speed(command):
    done = subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2, help="of timing; 0: none")
    parser.add_argument("--types", default=",".join(TYPES))
    args = parser.parse_args()
    if not (FOLDER / "config.json").exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_tokenizer()
        write_model()
    ids = [1] + [int(i) for i in numpy.random.default_rng(2).integers(2, VOCABULARY, IDS - 1)]
    reference = ours(FOLDER, ids)
    here = pathlib.Path(__file__).parent
    for name in args.types.split(","):
        option, number = TYPES[name]
        a, b = file_of(option), their_file(option, number)
        found = {"type": name, "bytes": a.stat().st_size, "llamacpp_bytes": b.stat().st_size,
                 "kl": divergence(reference, ours(a, ids)), "kl_of_their_file": divergence(reference, ours(b, ids)),
                 "llamacpp_kl": divergence(reference, theirs(a, ids)), "llamacpp_kl_of_their_file": divergence(reference, theirs(b, ids))}
        for _ in range(args.rounds):
            x = speed([BUILD / "bench/bench_language", a, 0, 1])
            y = speed([os.environ.get("ATTEND_PEERS_PYTHON", "python3"), here / "llamacpp.py", "--rounds", 1, a])
            for key in "tokens_per_second", "prompt_tokens_per_second":
                found[key], found["llamacpp_" + key] = max(found.get(key, 0), x[key]), max(found.get("llamacpp_" + key, 0), y[key])
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
