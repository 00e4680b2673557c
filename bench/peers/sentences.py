#!/usr/bin/env python3
"""Sentence embeddings with all-MiniLM-L6-v2: attend, ONNX Runtime and sentence-transformers, turn and turn about.

Sentences: the 3,000 of STS-B dev where the data is present, else those of examples/. All sides get the same texts and
threads. ONNX Runtime has the graph of its own optimizer and batches of 32, sorted by number of tokens so that it pads
as little as can be; sentence-transformers runs as it comes, in fp32. Text to normalized embedding is timed on all
sides: throughput as the best pass of all rounds, one 16-token sentence as the best round's median of 200 calls.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read by the imports below

from common import BUILD, CACHE, PAUSE, ROOT, model_folder, run_json, sts, table

TOKENS = 16  # of the sentence that is timed alone
BATCH = 32
PASSES = 2  # over all sentences, each round; bench_sentences does as many
CALLS = 200  # of one sentence, each round; the same there
DIM = 384


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    sides = parser.add_mutually_exclusive_group()
    sides.add_argument("--int8", action="store_true", help="attend and ONNX Runtime with int8 weights")
    sides.add_argument("--bf16", action="store_true", help="attend with products of bf16, sentence-transformers in bf16")
    parser.add_argument("--json", action="store_true", help="one object")
    return parser.parse_args()


args = parse()
os.environ["RAYON_NUM_THREADS"] = str(args.threads)  # tokenizers

import numpy as np
import onnxruntime
import torch
import transformers
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.set_num_threads(args.threads)


def export(folder):
    """The encoder as an ONNX graph, with the fusions that ONNX Runtime has for BERT; made once."""
    path = CACHE / f"{folder.name}-{onnxruntime.__version__}.onnx"
    if path.exists():
        return path
    from onnxruntime.transformers import optimizer

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

        def forward(self, input_ids, attention_mask):
            return self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    CACHE.mkdir(parents=True, exist_ok=True)
    plain = CACHE / "plain.onnx"
    ones = torch.ones(2, TOKENS, dtype=torch.long)
    axes = {0: "batch", 1: "tokens"}
    warnings.simplefilter("ignore")  # about tracing, and about this exporter being the older one
    torch.onnx.export(Hidden(), (ones, ones), str(plain), input_names=["input_ids", "attention_mask"],
                      output_names=["hidden"], opset_version=17, dynamo=False,
                      dynamic_axes={"input_ids": axes, "attention_mask": axes, "hidden": axes})
    graph = optimizer.optimize_model(str(plain), model_type="bert", num_heads=12, hidden_size=DIM)
    fused = graph.get_fused_operator_statistics()
    if not fused.get("Attention") or not fused.get("SkipLayerNormalization"):
        sys.exit(f"ONNX Runtime's optimizer did not fuse the graph: {fused}")
    graph.save_model_to_file(str(path.with_suffix(".part")))
    os.replace(path.with_suffix(".part"), path)
    plain.unlink()
    return path


class OnnxRuntime:
    """Batches of 32, sorted by length of the text as sentence-transformers does; or by tokens, which pads least."""
    name = "ONNX Runtime"
    by_tokens = False
    graph = staticmethod(export)

    def __init__(self, folder):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(self.graph(folder)), options,
                                                    providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(256)
        self.tokenizer.no_padding()

    def encode(self, texts):
        ids = [e.ids for e in self.tokenizer.encode_batch(texts)]
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i] if self.by_tokens else texts[i]))
        out = np.empty((len(ids), DIM), np.float32)
        for start in range(0, len(order), BATCH):
            rows = order[start:start + BATCH]
            tokens = np.zeros((len(rows), max(len(ids[row]) for row in rows)), np.int64)
            mask = np.zeros_like(tokens)
            for i, row in enumerate(rows):
                tokens[i, :len(ids[row])] = ids[row]
                mask[i, :len(ids[row])] = 1
            hidden = self.session.run(None, {"input_ids": tokens, "attention_mask": mask})[0]
            mean = (hidden * mask[:, :, None]).sum(1, dtype=np.float32) / mask.sum(1, keepdims=True)
            out[rows] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return out


class OnnxRuntimeInt8(OnnxRuntime):
    """Its dynamic quantization: the activations of a batch have one scale together."""
    name = "ONNX Runtime int8"

    @staticmethod
    def graph(folder):
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
        full = export(folder)
        path = full.with_suffix(".int8.onnx")
        if not path.exists():
            quantize_dynamic(str(full), str(path.with_suffix(".part")), weight_type=QuantType.QInt8, per_channel=True,
                             reduce_range=True,  # without VNNI 8 bits of both would saturate
                             extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
            os.replace(path.with_suffix(".part"), path)
        return path


class OnnxRuntimeByTokens(OnnxRuntime):
    name = "ONNX Runtime, sorted by tokens"
    by_tokens = True


class SentenceTransformers:
    name = "sentence-transformers"
    options = {}

    def __init__(self, folder):
        self.model = SentenceTransformer(str(folder), device="cpu", **self.options)

    def encode(self, texts):
        return self.model.encode(texts, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)


class SentenceTransformersBf16(SentenceTransformers):
    name = "sentence-transformers bf16"
    options = {"model_kwargs": {"dtype": torch.bfloat16}}

    def encode(self, texts):
        return self.model.encode(texts, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False,
                                 convert_to_tensor=True).float().numpy()


def measure_here(side, texts):
    """One round of a side that runs in this process: sentences a second, ms of the first alone (best, median)."""
    passes, calls = [], []
    side.encode(texts[:BATCH])
    for _ in range(PASSES):
        start = time.perf_counter()
        side.vectors = side.encode(texts)
        passes.append(time.perf_counter() - start)
    for _ in range(CALLS):
        start = time.perf_counter()
        side.encode(texts[:1])
        calls.append(1e3 * (time.perf_counter() - start))
    return len(texts) / min(passes), min(calls), statistics.median(calls)


class Attend:
    def __init__(self, folder, texts, scratch, weights="stored"):
        self.name = "attend" if weights == "stored" else f"attend {weights.split('/')[-1]}"
        self.vectors_path = os.path.join(scratch, f"{weights.replace('/', '-')}.f32")
        path = os.path.join(scratch, "sentences.txt")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(t + "\n" for t in texts)
        self.command = [BUILD / "bench/bench_sentences", folder, path, args.threads, self.vectors_path,
                        weights]

    def measure(self):
        [found] = run_json(*self.command)
        self.vectors = np.fromfile(self.vectors_path, np.float32).reshape(-1, DIM)
        return found["per_second"], found["one_ms"], found["one_median_ms"]


def texts_first(texts, folder):
    """The texts, a sentence of 16 tokens moved to the front; and the row that each text then has."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    first = next((i for i, t in enumerate(texts) if len(tokenizer.encode(t).ids) == TOKENS), None)
    if first is None:
        sys.exit(f"none of the {len(texts)} sentences has {TOKENS} tokens")
    order = [first] + [i for i in range(len(texts)) if i != first]
    return [texts[i] for i in order], np.argsort(order)


def correlation(vectors, row, scores):
    """Spearman's, times 100, of cosines and the scores that people gave."""
    a, b = vectors[row[:len(scores)]], vectors[row[len(scores):]]
    return 100 * spearmanr((a * b).sum(1), scores)[0]


def measure(folder, texts, scratch):
    ours, peers = [Attend(folder, texts, scratch)], [SentenceTransformers(folder)]
    if args.int8:
        ours.append(Attend(folder, texts, scratch, "int8"))
        peers.append(OnnxRuntimeInt8(folder))
    elif args.bf16:
        ours.append(Attend(folder, texts, scratch, "stored/bf16"))
        peers.append(SentenceTransformersBf16(folder))
    else:
        peers += [OnnxRuntime(folder), OnnxRuntimeByTokens(folder)]
    rounds = {side.name: [] for side in ours + peers}
    for _ in range(args.rounds):
        for side in ours + peers:
            time.sleep(PAUSE)
            rounds[side.name].append(side.measure() if side in ours else measure_here(side, texts))
    found = {}
    for side in ours + peers:
        per_second, one, median = zip(*rounds[side.name])
        found[side.name] = {"per_second": round(max(per_second), 1), "one_ms": round(min(one), 4),
                            "one_median_ms": round(min(median), 4), "rounds": per_second, "vectors": side.vectors}
    return found


def main():
    folder, data = model_folder(), sts()
    if data:
        texts = data[0] + data[1]
    else:
        print("STS-B is not here ($ATTEND_DATA or ../shared/data): Spearman skipped, sentences of examples/ taken",
              file=sys.stderr)
        files = [ROOT / "examples" / name for name in ("sentences.txt", "facts.txt")]
        texts = [text for file in files for text in file.read_text("utf-8").splitlines()]
    texts, row = texts_first(texts, folder)
    with tempfile.TemporaryDirectory() as scratch:
        found = measure(folder, texts, scratch)
    reference = found[SentenceTransformers.name]["vectors"]
    for side in found.values():
        vectors = side.pop("vectors")
        side["difference"] = float(abs(vectors - reference).max())
        side["spearman"] = round(correlation(vectors, row, data[2]), 4) if data else None
    versions = {m.__name__: m.__version__ for m in (onnxruntime, torch, transformers)}
    if args.json:
        print(json.dumps({"sentences": len(texts), "sts": bool(data), "threads": args.threads, "rounds": args.rounds,
                          "versions": versions, "sides": found}))
        return
    print(f"{len(texts)} sentences{' of STS-B dev' if data else ''}, {args.threads} threads, best of {args.rounds} "
          "rounds; " + ", ".join(f"{name} {version}" for name, version in versions.items()))
    ours = found["attend int8" if args.int8 else "attend bf16" if args.bf16 else "attend"]
    print(table(["", "sentences/s", "attend is", "one, ms", "attend is", "max difference", "Spearman"], [
        [name, f"{s['per_second']:.0f}", f"{ours['per_second'] / s['per_second']:.2f} x", f"{s['one_median_ms']:.3f}",
         f"{s['one_median_ms'] / ours['one_median_ms']:.2f} x", f"{s['difference']:.1e}",
         f"{s['spearman']:.2f}" if data else "skipped"] for name, s in found.items()]))


if __name__ == "__main__":
    main()
