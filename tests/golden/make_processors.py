#!/usr/bin/env python3
"""Writes processors.jsonl for tests/image/image_processor.c: settings of preprocessing, an image of images/, and what
the Pillow back end of `transformers`, or timm's transform for evaluation, makes of it: its shape [height, width,
channels], the CRC-32 of all values (float32, little endian) and the first six.

Made with transformers 5.24, timm 1.0.31, torchvision 0.29 and Pillow 13.
"""
import json
import pathlib
import tempfile
import zlib

import numpy
import timm.data
from PIL import Image, ImageOps
from transformers import AutoImageProcessor

HERE = pathlib.Path(__file__).parent
lines = []


def load(image, channels):
    return ImageOps.exif_transpose(Image.open(HERE / "images" / image)).convert("L" if channels == 1 else "RGB")


def add(name, settings, image, values, model_type=None):
    values = numpy.ascontiguousarray(values.transpose(1, 2, 0), dtype="<f4")
    lines.append(json.dumps({"file": name, "settings": settings, "model_type": model_type, "image": image, "shape": values.shape,
                             "crc32": zlib.crc32(values.tobytes()),
                             "first": [float(v) for v in values.ravel()[:6]]}) + "\n")


def transformers(class_name, image="rgb.png", channels=3, key="image_processor_type", model_type=None, **settings):
    settings = {key: class_name, **settings} if class_name else settings
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "preprocessor_config.json").write_text(json.dumps(settings))
        if model_type:
            (pathlib.Path(folder) / "config.json").write_text(json.dumps({"model_type": model_type}))
        processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
        assert type(processor).__name__.endswith("Pil"), type(processor)
        values = processor(load(image, channels), return_tensors="np")["pixel_values"][0]
    add("preprocessor_config.json", settings, image, values, model_type)


for image in "rgb.png", "orientation_6.png":
    transformers("ViTImageProcessor", image)
    transformers("DeiTImageProcessor", image)
    transformers("BitImageProcessor", image)
transformers("ViTFeatureExtractor", key="feature_extractor_type", size=8, do_normalize=True, do_resize=True,
             image_mean=[0.5, 0.5, 0.5], image_std=[0.5, 0.5, 0.5], resample=2)
transformers("DeiTFeatureExtractor", key="feature_extractor_type", size=9, crop_size=6, do_center_crop=True, resample=3,
             image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])
transformers("ViTImageProcessorFast", size={"height": 6, "width": 10}, resample=1)
transformers("ViTImageProcessor", size=[6, 10], resample=0, crop_size=None, do_center_crop=None, do_convert_rgb=None)
transformers("ViTImageProcessor", size={"height": 8, "width": 8}, do_rescale=False)
transformers("ViTImageProcessor", size={"height": 8, "width": 8}, do_normalize=False)
transformers("ViTImageProcessor", size={"height": 8, "width": 8}, rescale_factor=0.01, image_mean=0.25, image_std=0.75)
transformers("ViTImageProcessor", size={"shortest_edge": 9}, do_center_crop=True, crop_size={"height": 8, "width": 7})
transformers("ViTImageProcessor", size=9, default_to_square=False, do_center_crop=True, crop_size=8)
transformers("BitImageProcessor", size=13, crop_size=8)
transformers("BitImageProcessor", size={"shortest_edge": 13}, crop_size={"height": 16, "width": 32}, resample=3)
transformers("BitImageProcessor", do_resize=False, crop_size={"height": 14, "width": 8})
transformers("ViTImageProcessor", "gray.png", 1, size={"height": 8, "width": 8}, image_mean=[0.1307], image_std=[0.3081])
transformers("ViTImageProcessor", "rgb.png", 1, size={"height": 8, "width": 8}, image_mean=[0.1307], image_std=[0.3081])
transformers("ViTImageProcessor", size=8, foo=[1], crop_pct=0.9, size_divisor=5, pad_size={"height": 9, "width": 9},
             do_flip_channel_order=True, do_reduce_labels=True)  # what the class does not know has no effect
transformers("BitImageProcessor", size=13, crop_size=8, do_thumbnail=True, max_size=3)
for model_type in "vit", "deit", "dinov2":
    transformers(None, model_type=model_type, do_normalize=True, do_resize=True, size=9, crop_size=7)


def timm_folder(image="rgb.png", nested=True, **settings):
    config = timm.data.resolve_data_config(pretrained_cfg=settings)
    values = timm.data.create_transform(**config)(load(image, config["input_size"][0])).numpy()
    folder = {"architecture": "vit_tiny_patch16_224"}
    add("config.json", {**folder, "pretrained_cfg": settings} if nested else {**folder, **settings}, image, values)


for image in "rgb.png", "orientation_6.png":
    timm_folder(image, input_size=[3, 9, 9])
    timm_folder(image, input_size=[3, 10, 10], interpolation="bicubic", crop_pct=0.9, crop_mode="center",
                mean=[0.5, 0.5, 0.5], std=[0.5, 0.5, 0.5], fixed_input_size=True, test_input_size=[3, 20, 20])
    timm_folder(image, input_size=[3, 8, 12], interpolation="bilinear", crop_pct=0.8, crop_mode="squash")
timm_folder(nested=False, input_size=[3, 7, 7], interpolation="lanczos", crop_pct=1.0)
timm_folder("gray.png", input_size=[1, 8, 8], mean=[0.1307], std=[0.3081], crop_pct=0.95)
timm_folder(tag="in21k")

(HERE / "processors.jsonl").write_text("".join(lines))
