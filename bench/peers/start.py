#!/usr/bin/env python3
"""One sentence from a cold start: embeds TEXT with all-MiniLM-L6-v2 by sentence-transformers, or by ONNX Runtime and
tokenizers without PyTorch, and prints the first number of the vector. Who calls it takes the time of the process.

    start.py sentence-transformers|onnxruntime FOLDER GRAPH TEXT
"""
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")


def sentence_transformers(folder, _graph, text):
    from sentence_transformers import SentenceTransformer
    return SentenceTransformer(folder, device="cpu").encode([text], normalize_embeddings=True)[0]


def onnx_runtime(folder, graph, text):
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tokenizer.no_padding()
    ids = np.array([tokenizer.encode(text).ids], np.int64)
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    hidden = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]
    mean = hidden[0].mean(0)
    return mean / np.linalg.norm(mean)


if __name__ == "__main__":
    sides = {"sentence-transformers": sentence_transformers, "onnxruntime": onnx_runtime}
    print(f"{sides[sys.argv[1]](*sys.argv[2:])[0]:.6f}")
