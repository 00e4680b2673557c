#!/usr/bin/env python3
"""Vision Transformers with `transformers`, `timm` and ONNX Runtime, for bench/accept/d.

    vision.py agree             random folders of each source: the largest difference of logits from those of PyTorch in
                                float64, of the largest logit, as JSON lines; exit code 1 if one is above 1e-5
    vision.py folder OUT        a folder with ViT-B/16 of random weights
    vision.py speed FOLDER      images a second of that, batch 8: transformers, ONNX Runtime, attend in turn
    vision.py bf16 FOLDER       the same of each round: transformers in bf16 (autocast, and weights of bf16), attend in f32
                                and with products of bf16 in turn
    vision.py train             images a second of training steps of a small one, batch 128: PyTorch (the class of
                                transformers with the fused AdamW), attend in turn
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read by the imports below

import numpy
import timm
import torch
import transformers
from timm.models._hub import save_for_hf

from common import BUILD, CACHE, best_time, run_json

ALLOWED, BATCH = 1e-5, 8
SMALL = dict(hidden_size=192, num_hidden_layers=12, num_attention_heads=3, num_labels=1000)
# class, its configuration, pixels of images (height, width)
TRANSFORMERS = [
    ("ViTForImageClassification", dict(SMALL, intermediate_size=768, image_size=224, patch_size=16), (224, 224)),
    ("ViTModel", dict(SMALL, intermediate_size=768, image_size=[96, 224], patch_size=[16, 32]), (96, 224)),
    ("DeiTForImageClassificationWithTeacher", dict(SMALL, intermediate_size=768), (224, 224)),
    ("DeiTForImageClassification", dict(SMALL, intermediate_size=768), (224, 224)),
    ("Dinov2ForImageClassification", dict(SMALL, image_size=518), (224, 224)),
    ("Dinov2Model", dict(SMALL, image_size=224), (154, 322)),
    ("Dinov2ForImageClassification", dict(SMALL, image_size=224, use_swiglu_ffn=True), (224, 224)),
    ("Dinov2WithRegistersForImageClassification", dict(SMALL, image_size=518), (224, 224)),
]
TIMM = ["vit_tiny_patch16_224", "vit_small_patch32_224", "vit_small_patch16_36x1_224", "deit_tiny_patch16_224",
        "deit_tiny_distilled_patch16_224", "deit3_small_patch16_224", "vit_wee_patch16_reg1_gap_256",
        "vit_little_patch16_reg4_gap_256", "vit_medium_patch16_gap_240", "vit_small_patch14_reg4_dinov2",
        "vit_small_patch14_dinov2", "flexivit_small", "test_vit2"]


def randomize(model):
    """Weights of order 1 / sqrt(inputs), so that no layer fades"""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            scale = 0.1 if p.ndim == 1 else p[0].numel() ** -0.5 if p.ndim == 2 or p.ndim == 4 else 0.5
            p.normal_(0, scale)
            if p.ndim == 1 and name.endswith(("weight", "lambda1", "gamma")):
                p += 1
    return model


def numbers(height, width, channels):
    return torch.rand(2, channels, height, width, generator=torch.Generator().manual_seed(2)) * 2 - 1


def ours(folder, images):
    pixels = images.permute(0, 2, 3, 1).contiguous().numpy()
    command = [BUILD / "bench" / "bench_vision", folder, "logits", *map(str, pixels.shape[:3])]
    out = subprocess.run(command, input=pixels.tobytes(), stdout=subprocess.PIPE, check=True).stdout
    return numpy.frombuffer(out, numpy.float32).reshape(len(images), -1)


def compare(name, folder, images, want):
    """Prints the difference; is it allowed?"""
    want = want.numpy()
    difference = float(abs(ours(folder, images) - want).max() / abs(want).max())
    print(json.dumps({"model": name, "numbers": want.size, "difference": difference}), flush=True)
    return difference <= ALLOWED


def of_transformers(cls, config, size):
    kind = getattr(transformers, cls)
    model = randomize(kind(kind.config_class(**config, attn_implementation="eager"))).eval()
    images = numbers(*size, 3)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        model.save_pretrained(folder)
        model = model.double()
        y = model(images.double())
        want = y.logits if hasattr(y, "logits") else y.last_hidden_state[:, 0]
        return compare(cls, folder, images, want)


def of_timm(name):
    model = randomize(timm.create_model(name, num_classes=1000)).eval()
    images = numbers(*model.pretrained_cfg["input_size"][1:], 3)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        save_for_hf(model, folder, safe_serialization=True)
        return compare(name, folder, images, model.double()(images.double()))


def agree():
    good = [of_transformers(*row) for row in TRANSFORMERS] + [of_timm(name) for name in TIMM]
    raise SystemExit(not all(good))


def make_folder(out):
    randomize(transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000))).save_pretrained(out)


def onnx_session(model, folder):
    import onnxruntime
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / "vit.onnx"
    torch.onnx.export(model, (torch.zeros(BATCH, 3, 224, 224),), str(path), input_names=["pixel_values"],
                      output_names=["logits"], dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def speed(folder, rounds):
    model = transformers.ViTForImageClassification.from_pretrained(folder).eval()
    images = torch.rand(BATCH, 3, 224, 224) - 0.5
    session = onnx_session(model, folder)
    feed = {"pixel_values": images.numpy()}
    found = {"transformers": 0.0, "ONNX Runtime": 0.0, "attend": 0.0}

    def with_torch():
        with torch.inference_mode():
            model(images)

    for _ in range(rounds):
        found["transformers"] = max(found["transformers"], BATCH / best_time(with_torch, 0, 2))
        found["ONNX Runtime"] = max(found["ONNX Runtime"], BATCH / best_time(lambda: session.run(None, feed), 0, 2))
        line = run_json(BUILD / "bench" / "bench_vision", folder, torch.get_num_threads(), BATCH, 2)[0]
        found["attend"] = max(found["attend"], line["images_per_second"])
    print(json.dumps({"batch": BATCH, "threads": torch.get_num_threads(), "images_per_second": found}))


def bf16(folder, rounds):
    model = transformers.ViTForImageClassification.from_pretrained(folder).eval()
    pure = transformers.ViTForImageClassification.from_pretrained(folder, dtype=torch.bfloat16).eval()
    images = torch.rand(BATCH, 3, 224, 224) - 0.5
    halves = images.bfloat16()

    def autocast():
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            model(images)

    def whole():
        with torch.inference_mode():
            pure(halves)

    found = {name: [] for name in ("attend", "attend bf16", "PyTorch autocast", "PyTorch pure bf16")}
    for _ in range(rounds):
        for name, compute in (("attend", "f32"), ("attend bf16", "bf16")):
            [line] = run_json(BUILD / "bench" / "bench_vision", folder, torch.get_num_threads(), BATCH, 2, compute)
            found[name].append(line["images_per_second"])
        for name, call in (("PyTorch autocast", autocast), ("PyTorch pure bf16", whole)):
            found[name].append(BATCH / best_time(call, 0, 2))
    print(json.dumps({"batch": BATCH, "threads": torch.get_num_threads(), "version": torch.__version__, "rounds": found}))


def train(rounds):
    settings = dict(hidden_size=192, num_hidden_layers=9, num_attention_heads=3, intermediate_size=384, image_size=32,
                    patch_size=4, num_channels=3, num_labels=10)
    batch = 128
    model = transformers.ViTForImageClassification(transformers.ViTConfig(**settings)).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    images, labels = torch.rand(batch, 3, 32, 32) - 0.5, torch.arange(batch) % 10
    found = {"PyTorch": 0.0, "attend": 0.0}

    def step():
        loss = torch.nn.functional.cross_entropy(model(images).logits, labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    for _ in range(rounds):
        found["PyTorch"] = max(found["PyTorch"], batch / best_time(step, 0, 3))
        line = run_json(BUILD / "bench" / "bench_vision", "train", json.dumps({"model_type": "vit", **settings}), batch,
                        3)[0]
        found["attend"] = max(found["attend"], line["images_per_second"])
    print(json.dumps({"batch": batch, "threads": torch.get_num_threads(), "images_per_second": found}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["agree", "folder", "speed", "bf16", "train"])
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    if args.what == "agree":
        agree()
    elif args.what == "folder":
        make_folder(args.folder)
    elif args.what == "train":
        train(args.rounds)
    else:
        (bf16 if args.what == "bf16" else speed)(args.folder, args.rounds)


if __name__ == "__main__":
    main()
