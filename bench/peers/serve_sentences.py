#!/usr/bin/env python3
"""A sentence-transformers model behind FastAPI and uvicorn, as such servers are written: one call of encode at a time, /v1/embeddings
as OpenAI's with base64.

    serve_sentences.py PORT FOLDER THREADS
"""
import base64
import os
import sys
import threading

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read by the imports below

import fastapi
import torch
import uvicorn
from sentence_transformers import SentenceTransformer

port, folder, threads = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
torch.set_num_threads(threads)
model = SentenceTransformer(folder, device="cpu")
one_at_a_time = threading.Lock()
app = fastapi.FastAPI()


@app.get("/health")
def health():
    return {"status": "ok"}


@app.post("/v1/embeddings")
def embeddings(body: dict):
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    with one_at_a_time:
        vectors = model.encode(texts, show_progress_bar=False)
    data = [{"object": "embedding", "index": i, "embedding": base64.b64encode(v.tobytes()).decode()}
            for i, v in enumerate(vectors)]
    return {"object": "list", "data": data, "model": body.get("model"), "usage": {"prompt_tokens": 0, "total_tokens": 0}}


uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
