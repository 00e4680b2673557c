#!/usr/bin/env python3
"""Language models with `transformers`: what a folder generates, and how fast, for bench/accept/f.

    language.py facts FOLDER OUT   prompts, their ids, logits (OUT.N.f32) and 100 greedy tokens each, as JSON
    language.py speed FOLDER       tokens a second of decoding (f32, bf16) and of a prompt of 1,024 tokens (f32)
"""
import argparse
import json
import os
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read by the imports below

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

PROMPTS = ["The capital of France is", "Once upon a time there was a small robot who", "def fibonacci(n):",
           "The three primary colours are", "Water boils at a temperature of"]
CHAT = [{"role": "user", "content": "What is the capital of France?"}]
GREEDY, PROMPT, SHORT, DECODED = 100, 1024, 32, 24


def facts(folder, out):
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32)
    found = []
    texts = PROMPTS + [tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, tokenize=False)]
    for i, text in enumerate(texts):
        ids = tokenizer(text, add_special_tokens=i < len(PROMPTS), return_tensors="pt").input_ids
        with torch.inference_mode():
            model(ids).logits[0].numpy().tofile(f"{out}.{i}.f32")
            more = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=GREEDY,
                                  pad_token_id=0)
        found.append({"text": text, "ids": ids[0].tolist(), "greedy": more[0, ids.shape[1]:].tolist()})
    print(json.dumps({"version": transformers.__version__, "prompts": found}))


def decode(model, ids):
    """Seconds a token: the cache grows from SHORT tokens."""
    with torch.inference_mode():
        done = model(ids[:, :SHORT], use_cache=True, logits_to_keep=1)
        cache, last = done.past_key_values, done.logits[:, -1:].argmax(-1)
        start = time.perf_counter()
        for _ in range(DECODED):
            done = model(last, past_key_values=cache, use_cache=True)
            last = done.logits[:, -1:].argmax(-1)
        return (time.perf_counter() - start) / DECODED


def prompt(model, ids):
    with torch.inference_mode():
        start = time.perf_counter()
        model(ids, use_cache=True, logits_to_keep=1)
        return time.perf_counter() - start


def speed(folder, rounds):
    found = {"version": transformers.__version__, "threads": torch.get_num_threads()}
    ids = (7 * torch.arange(PROMPT) % 32000).unsqueeze(0)
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
        found[name] = 1 / min(decode(model, ids) for _ in range(rounds))
        if dtype == torch.float32:
            found["prompt"] = PROMPT / min(prompt(model, ids) for _ in range(rounds))
    print(json.dumps(found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["facts", "speed"])
    parser.add_argument("folder")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    if args.what == "facts":
        facts(args.folder, args.out)
    else:
        speed(args.folder, args.rounds)
