#!/usr/bin/env python3
"""Writes vit.txt: folders of tiny vision Transformers, whose weights follow from their names (tiny_weights.py), and their
logits and features in float64, by transformers and timm from those folders.

    python3 make_vit.py

Lines of a model: NAME.config, config.json as it was written; NAME.tensors, each name:dimensions; NAME.images, numbers,
height, width, channels; NAME.logits; NAME.features, where there is no classifier; NAME.hidden, of the last patch of the first image.

Of some models also what the tokens of a picture of 8 bits attend to, pixel i is 37 i mod 256: NAME.head, of layer 1,
head 2; NAME.mean, of layer 0; NAME.rollout, of all layers.

vit_architectures.txt has timm's architectures, each with what its model is made of (see architecture).

Made with transformers 5.24.0, timm 1.0.31, torch 2.15.0 on a CPU. tests/fixtures/tiny_vit.h makes the same folders.
"""
import json
import pathlib
import tempfile

import numpy
import timm
import torch
from safetensors.torch import load_file, save_file
from timm.models._hub import save_for_hf
from transformers import (DeiTConfig, DeiTForImageClassification, DeiTForImageClassificationWithTeacher, Dinov2Config,
                          Dinov2ForImageClassification, Dinov2Model, Dinov2WithRegistersConfig,
                          Dinov2WithRegistersForImageClassification, ViTConfig, ViTForImageClassification, ViTModel)

from tiny_weights import numbers

SIZES = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_labels=5)
VIT = dict(**SIZES, intermediate_size=24, image_size=12, patch_size=4)
DINO = dict(**SIZES, mlp_ratio=2, image_size=12, patch_size=4, layerscale_value=0.5)
TIMM = dict(embed_dim=16, depth=2, num_heads=4, mlp_ratio=1.5, img_size=12, patch_size=4, num_classes=5)
IMAGES = {"plain": (2, 12, 12, 3), "oblong": (2, 8, 12, 1), "larger": (2, 20, 17, 3), "smaller": (1, 9, 8, 3),
          "square": (2, 20, 16, 3)}

# name: class, configuration, images
TRANSFORMERS = {
    "vit": (ViTForImageClassification, ViTConfig(**VIT), "plain"),
    "vit_oblong": (ViTForImageClassification, ViTConfig(**{**VIT, "image_size": [8, 12], "patch_size": [2, 4]},
                   num_channels=1, qkv_bias=False, hidden_act="gelu_new", layer_norm_eps=0.01), "oblong"),
    "vit_model": (ViTModel, ViTConfig(**VIT, hidden_act="relu"), "plain"),
    "deit": (DeiTForImageClassification, DeiTConfig(**VIT), "plain"),
    "deit_distilled": (DeiTForImageClassificationWithTeacher, DeiTConfig(**VIT), "plain"),
    "dinov2": (Dinov2ForImageClassification, Dinov2Config(**DINO), "plain"),
    "dinov2_larger": (Dinov2ForImageClassification, Dinov2Config(**DINO), "larger"),
    "dinov2_model": (Dinov2Model, Dinov2Config(**DINO), "smaller"),
    "dinov2_giant": (Dinov2ForImageClassification, Dinov2Config(**DINO, use_swiglu_ffn=True), "plain"),
    "registers": (Dinov2WithRegistersForImageClassification,
                  Dinov2WithRegistersConfig(**DINO, num_register_tokens=3), "larger"),
    "registers_smaller": (Dinov2WithRegistersForImageClassification,
                          Dinov2WithRegistersConfig(**DINO, num_register_tokens=3), "smaller"),
}
# name: architecture, arguments, images
ARCHITECTURES = {
    "timm_vit": ("vit_tiny_patch16_224", {}, "plain"),
    "timm_mean": ("vit_base_patch16_224", dict(global_pool="avg"), "plain"),
    "timm_deit": ("deit_tiny_patch16_224", dict(in_chans=1, img_size=(8, 12), patch_size=(2, 4)), "oblong"),
    "timm_distilled": ("deit_tiny_distilled_patch16_224", {}, "plain"),
    "timm_deit3": ("deit3_small_patch16_224", {}, "plain"),
    "timm_gap": ("vit_medium_patch16_gap_256", {}, "plain"),
    "timm_reg4": ("vit_medium_patch16_reg4_gap_256", {}, "plain"),
    "timm_so150m2": ("vit_so150m2_patch16_reg1_gap_256", {}, "plain"),
    "timm_registers": ("vit_small_patch14_reg4_dinov2", dict(dynamic_img_size=True), "square"),
    "timm_no_norm": ("vit_intern300m_patch14_448", dict(dynamic_img_size=False), "plain"),
    "timm_giant": ("vit_giant_patch14_dinov2", dict(mlp_ratio=3, num_classes=0), "plain"),
}


class OwnViT(torch.nn.Module):
    """ "attend-vit": a stem of convolutions, or patches, and the mean of all tokens, or [CLS]"""

    def __init__(self, config):
        super().__init__()
        self.config, width = config, config["hidden_size"]
        vit = ViTForImageClassification(ViTConfig(**{**VIT, "layer_norm_eps": 1e-6}))
        self.vit, self.classifier = vit.vit, vit.classifier
        channels = [config["num_channels"], *config.get("stem", [])]
        self.stem = torch.nn.ModuleList(torch.nn.Conv2d(a, b, 3, padding=1, bias=False)
                                        for a, b in zip(channels, channels[1:]))
        self.cls = config["pooling"] == "cls"
        patch = 2 ** len(self.stem) if self.stem else config["patch_size"]
        self.position = torch.nn.Parameter(torch.zeros(1, (12 // patch) ** 2 + self.cls, width))

    def names(self):
        """The parameters by their names in the folder"""
        ours = {k: v for k, v in disk_names(self.vit, ViTModel).items() if "pooler" not in k and "position" not in k}
        if self.stem:
            ours = {k: v for k, v in ours.items() if "patch_embeddings" not in k}
        if not self.cls:
            ours.pop("embeddings.cls_token")
        ours = {"vit." + k: v for k, v in ours.items()}
        ours["vit.embeddings.position_embeddings"] = self.position
        ours |= {f"vit.embeddings.stem.{i}.weight": c.weight for i, c in enumerate(self.stem)}
        return ours | {"classifier." + k: v for k, v in self.classifier.named_parameters()}

    def forward(self, images):
        x = images
        for c in self.stem:
            x = torch.nn.functional.max_pool2d(torch.relu(c(x)), 3, 2, 1)
        x = x.flatten(2).transpose(1, 2) if self.stem else self.vit.embeddings.patch_embeddings(x)
        if self.cls:
            x = torch.cat([self.vit.embeddings.cls_token.expand(len(x), -1, -1), x], 1)
        x = x + self.position
        for layer in self.vit.layers:
            x = layer(x)
        x = self.vit.layernorm(x)
        return self.classifier(x[:, 0] if self.cls else x.mean(1)), x


OWN = {
    "own_stem": dict(stem=[8, 16], pooling="mean", num_channels=1),
    "own_cls": dict(stem=[16], pooling="cls", num_channels=3),
    "own_patches": dict(pooling="mean", num_channels=3, patch_size=4),
}


def disk_names(model, cls):
    """Parameters by the names that transformers writes: found by numbering them"""
    with tempfile.TemporaryDirectory() as folder:
        saved = cls(model.config)
        order = dict(saved.named_parameters())
        for i, p in enumerate(order.values()):
            p.data.fill_(i)
        saved.save_pretrained(folder)
        which = {k: int(v.flatten()[0]) for k, v in load_file(folder + "/model.safetensors").items()}
    parameters = dict(model.named_parameters())
    return {k: parameters[list(order)[i]] for k, i in which.items() if list(order)[i] in parameters}


def join(values):
    return " ".join(f"{float(x):.9g}" for x in values.flatten())


def images(kind):
    n, height, width, channels = IMAGES[kind]
    return numbers("images", (n, height, width, channels)).permute(0, 3, 1, 2).double()


def lines(name, config, shapes, kind, logits, features, hidden):
    out = [f"{name}.config {json.dumps(config)}",
           f"{name}.tensors " + " ".join(f"{k}:{'x'.join(map(str, s))}" for k, s in shapes.items()),
           f"{name}.images " + " ".join(map(str, IMAGES[kind]))]
    out += [f"{name}.logits {join(logits)}"] if logits is not None else [f"{name}.features {join(features)}"]
    return out + [f"{name}.hidden {join(hidden[0, -1])}"]


def fill(folder):
    """model.safetensors with the same names and other numbers -> shapes"""
    old = load_file(folder + "/model.safetensors")
    save_file({k: numbers(k, v.shape) for k, v in old.items()}, folder + "/model.safetensors", {"format": "pt"})
    return {k: v.shape for k, v in old.items()}


def settings(folder, without=()):
    config = json.loads(pathlib.Path(folder, "config.json").read_text())
    return {k: v for k, v in config.items() if k not in without}


def of_transformers(name, cls, config, kind):
    with tempfile.TemporaryDirectory() as folder:
        cls(config).save_pretrained(folder)
        shapes = fill(folder)
        model = cls.from_pretrained(folder, attn_implementation="eager").double().eval()
        config = settings(folder, ("label2id", "transformers_version"))
    x = images(kind)
    base = getattr(model, model.base_model_prefix, model)
    hidden = base(x).last_hidden_state
    return lines(name, config, shapes, kind, None if base is model else model(x).logits, hidden[:, 0], hidden)


def attention(name):
    """Weights of one head, of the mean of heads, and the rollout: 0.5 A + 0.5 I, the last layer first"""
    cls, config, _ = TRANSFORMERS[name]
    with tempfile.TemporaryDirectory() as folder:
        cls(config).save_pretrained(folder)
        fill(folder)
        model = cls.from_pretrained(folder, attn_implementation="eager").double().eval()
    pixels = (torch.arange(12 * 12 * 3) * 37 % 256).reshape(1, 12, 12, 3).permute(0, 3, 1, 2)
    weights = model((pixels * numpy.float32(1 / 255) - 0.5).double() / 0.5, output_attentions=True).attentions
    rollout = torch.eye(weights[0].shape[-1], dtype=torch.float64)
    for a in weights:
        rollout = (0.5 * a[0].mean(0) + 0.5 * torch.eye(len(rollout))) @ rollout
    return [f"{name}.head {join(weights[1][0, 2])}", f"{name}.mean {join(weights[0][0].mean(0))}",
            f"{name}.rollout {join(rollout)}"]


def of_timm(name, architecture, arguments, kind):
    with tempfile.TemporaryDirectory() as folder:
        model = timm.create_model(architecture, **{**TIMM, **arguments})
        save_for_hf(model, folder, safe_serialization=True)
        shapes = fill(folder)
        model.load_state_dict(load_file(folder + "/model.safetensors"))
        config = settings(folder)
    model, x = model.double().eval(), images(kind)
    hidden = model.forward_features(x)
    features = model.forward_head(hidden, pre_logits=True)
    return lines(name, config, shapes, kind, model(x) if model.num_classes else None, features, hidden)


def of_attend(name, more):
    config = {"model_type": "attend-vit", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
              "intermediate_size": 24, "image_size": 12, "num_labels": 5, **more}
    kind = "plain"
    if config["num_channels"] == 1:
        IMAGES["gray"] = (2, 12, 12, 1)
        kind = "gray"
    model = OwnViT(config)
    parameters = model.names()
    for k, p in parameters.items():
        p.data = numbers(k, p.shape)
    logits, hidden = model.double().eval()(images(kind))
    return lines(name, config, {k: p.shape for k, p in parameters.items()}, kind, logits, None, hidden)


def architecture(name):
    """NAME patch hidden layers heads intermediate registers positioned, and 0 or 1: class token, distillation token,
    bias of queries, layer scale, SwiGLU, mean, norm before pooling, norm after it, any size; or NAME alone for one that
    needs what is not supported"""
    with torch.device("meta"):
        m = timm.create_model(name)
    block = m.blocks[0]
    supported = (type(block).__name__ == "Block" and type(block.attn).__name__ == "Attention" and m.attn_pool is None and
                 isinstance(block.attn.q_norm, torch.nn.Identity) and isinstance(m.norm_pre, torch.nn.Identity) and
                 isinstance(block.norm1, torch.nn.LayerNorm) and block.norm1.eps == 1e-6 and
                 isinstance(block.attn.norm, torch.nn.Identity) and
                 type(block.mlp.act) in (timm.layers.GELU, torch.nn.GELU, torch.nn.SiLU))
    if not supported:
        return name
    gated = isinstance(block.mlp, timm.layers.GluMlp)
    distilled = hasattr(m, "dist_token")
    norms = [isinstance(n, torch.nn.LayerNorm) for n in (m.norm, m.fc_norm)]
    numbers_of = [m.patch_embed.patch_size[0], m.embed_dim, len(m.blocks), block.attn.num_heads, block.mlp.fc2.in_features,
                  m.num_reg_tokens, m.pos_embed.shape[1] - m.patch_embed.num_patches, m.has_class_token, distilled,
                  block.attn.qkv.bias is not None, hasattr(block.ls1, "gamma"), gated, m.global_pool == "avg", *norms,
                  m.dynamic_img_size]
    return " ".join([name, *(str(int(x)) for x in numbers_of)])


def main():
    torch.set_num_threads(1)
    out = []
    with torch.no_grad():
        for name, model in TRANSFORMERS.items():
            out += of_transformers(name, *model)
        for name, model in ARCHITECTURES.items():
            out += of_timm(name, *model)
        for name, more in OWN.items():
            out += of_attend(name, more)
        for name in "vit", "registers":
            out += attention(name)
    names = sum((timm.list_models(module=module) for module in ("vision_transformer", "deit")), [])
    for name, text in ("vit", out), ("vit_architectures", map(architecture, names)):
        (pathlib.Path(__file__).parent / (name + ".txt")).write_text("\n".join(text) + "\n")


main()
