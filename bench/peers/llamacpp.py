#!/usr/bin/env python3
"""Language models with llama.cpp (llama-cpp-python), two threads: tokens a second of a prompt of 1,024 tokens, and of
those decoded after 32, of .gguf files. One JSON object a file.

    llamacpp.py [--rounds N] FILE.gguf...
"""
import argparse
import json
import os
import time

import llama_cpp

PROMPT, SHORT, DECODED = 1024, 32, 48


def measure(path, threads, rounds):
    model = llama_cpp.Llama(path, n_ctx=2048, n_threads=threads, n_threads_batch=threads, n_batch=PROMPT, n_ubatch=512,
                            verbose=False, seed=0)
    ids = [7 * i % min(model.n_vocab(), 32000) for i in range(PROMPT)]
    prompt = token = float("inf")
    for _ in range(rounds):
        model.reset()
        start = time.perf_counter()
        model.eval(ids)
        prompt = min(prompt, time.perf_counter() - start)
        model.reset()
        model.eval(ids[:SHORT])
        start = time.perf_counter()
        for i in range(DECODED):
            model.eval([ids[SHORT + i]])
        token = min(token, (time.perf_counter() - start) / DECODED)
    return {"file": os.path.basename(path), "version": llama_cpp.__version__, "threads": threads,
            "prompt_tokens_per_second": PROMPT / prompt, "tokens_per_second": 1 / token}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    for file in args.files:
        print(json.dumps(measure(file, len(os.sched_getaffinity(0)), args.rounds)), flush=True)
