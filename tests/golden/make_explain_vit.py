#!/usr/bin/env python3
"""Writes tests/golden/explain/figures_vit.txt: the figures that `attend explain vit` must show, computed by PyTorch in
float64 from the weights in models/fashion-mnist. A line is vit|LABEL NUMBERS, as in make_explain.py.
Usage: python3 tests/golden/make_explain_vit.py [MODEL_FOLDER PICTURE FIGURES_FILE]"""
import json
import pathlib
import sys
import numpy
import torch
from PIL import Image

root = pathlib.Path(__file__).parents[2]
folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "models" / "fashion-mnist"
picture = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else folder / "examples" / "ankle-boot.png"
figures = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else root / "tests" / "golden" / "explain" / "figures_vit.txt"
SHOWN, BEST = 6, 3

config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
preprocessor = json.loads((folder / "preprocessor_config.json").read_text(encoding="utf-8"))
D, K = config["hidden_size"], config["num_attention_heads"]
LAYERS, P = config["num_hidden_layers"], config["patch_size"]
D_h = D // K


def read_weights():
    data = (folder / "model.safetensors").read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    types = {"F16": "<f2", "F32": "<f4"}
    weights = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            from_byte, to_byte = (begin + offset for offset in entry["data_offsets"])
            values = numpy.frombuffer(data[from_byte:to_byte], dtype=types[entry["dtype"]])
            weights[name] = torch.from_numpy(values.astype("f8")).reshape(entry["shape"])
    return weights


def read_pixels():
    """[C, H, W], normalized."""
    image = Image.open(picture).convert("L" if config["num_channels"] == 1 else "RGB")
    assert image.size == (config["image_size"],) * 2, "a picture of the model's own size"
    x = torch.from_numpy(numpy.array(image)).double().reshape(*image.size, -1).permute(2, 0, 1)
    mean, deviation = (torch.tensor(preprocessor[name]).double()[:, None, None] for name in ("image_mean", "image_std"))
    return (x / 255 - mean) / deviation


class Vit:
    """The forward pass by the formulas, in one precision, with one of the source's errata."""

    def __init__(self, dtype, erratum=None):
        self.w = {name: value.to(dtype) for name, value in read_weights().items()}
        self.erratum = erratum
        x = read_pixels().to(dtype)
        side = x.shape[1] // P
        self.side = side
        self.patches = x.reshape(-1, side, P, side, P).permute(1, 3, 0, 2, 4).reshape(side * side, -1)
        e = "vit.embeddings."
        projection = self.w[e + "patch_embeddings.projection.weight"].reshape(D, -1)
        self.tokens = self.patches @ projection.T + self.w[e + "patch_embeddings.projection.bias"]
        self.cls, self.positions = self.w[e + "cls_token"][0], self.w[e + "position_embeddings"][0]
        self.z = torch.cat([self.cls, self.tokens]) + self.positions
        self.layers = []
        z = self.z
        for i in range(LAYERS):
            z = self.layer(f"vit.encoder.layer.{i}.", z)
        logits = self.linear("classifier", self.norm("vit.layernorm", z)[0])
        self.probability = torch.softmax(logits, -1)

    def linear(self, name, x):
        y = x @ self.w[name + ".weight"].T
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def norm(self, name, x):
        eps = config.get("layer_norm_eps", 1e-12)
        return torch.nn.functional.layer_norm(x, (D,), self.w[name + ".weight"], self.w[name + ".bias"], eps)

    def layer(self, name, z):
        h = self.norm(name + "layernorm_before", z)
        q = self.linear(name + "attention.attention.query", h)
        k = q if self.erratum == "k = v = q" else self.linear(name + "attention.attention.key", h)
        v = q if self.erratum == "k = v = q" else self.linear(name + "attention.attention.value", h)
        q, k, v = (x.unflatten(1, (K, D_h)).transpose(0, 1) for x in (q, k, v))
        products = q @ k.mT
        scores = products / (D if self.erratum == "scale √D" else D_h) ** 0.5
        a = torch.softmax(scores, -1)
        sa = a @ v
        c = sa.transpose(0, 1).flatten(1)
        y = z + (c if self.erratum == "no W^O" else self.linear(name + "attention.output.dense", c))
        self.layers.append(dict(h=h, q=q, k=k, v=v, products=products, scores=scores, a=a, sa=sa, y=y))
        inner = torch.nn.functional.gelu(self.linear(name + "intermediate.dense", self.norm(name + "layernorm_after", y)))
        return y + self.linear(name + "output.dense", inner)


lines = []
ERRATA = "right", "k = v = q", "scale √D", "no W^O"
exact = {erratum: Vit(torch.float64, erratum) for erratum in ERRATA}
single = {erratum: Vit(torch.float32, erratum) for erratum in ERRATA}


def rounded(x, error, digits):
    """x, and "?" after it if f32 may round its last digit either way. error 0: f32 has x itself, a weight."""
    from_tie = abs(abs(x) * 10**digits % 1 - 0.5) * 10.0**-digits
    return f"{0.0 if abs(x) < 0.5 * 10.0**-digits else x:.{digits}f}" + ("?" if error and from_tie <= error else "")


def put(label, of, digits, scale=1, erratum="right"):
    """A line of what `of` computes from a Vit. The error of f32 is bounded by four times that of PyTorch's and a rounding."""
    x, y = (scale * torch.atleast_1d(of(vit[erratum])).double() for vit in (exact, single))
    error = 0 if torch.equal(x, y) else 4 * (x - y).abs().max().item() + 2.0**-23 * x.abs().max().item()
    lines.append(f"vit|{label} " + " ".join(rounded(value, error, digits) for value in x.tolist()))


def put_grid(of, digits, scale=1):
    """A number for each patch, then that of [CLS]."""
    for row in range(exact["right"].side):
        put(f"row {row + 1}", lambda vit: of(vit)[1:].reshape(vit.side, vit.side)[row], digits, scale)
    put("CLS", lambda vit: of(vit)[0], digits, scale)


def entropy(a):
    return -(a * a.clamp_min(1e-30).log2()).sum(-1)


def answer(vit, rank=0):
    return int(vit.probability.argsort(descending=True)[rank])


def label(i):
    return config["id2label"][str(i)]


right = exact["right"]
N = right.side**2
shown = int(right.patches.var(1, correction=0).argmax())
head = int(entropy(right.layers[0]["a"][:, 0]).argmin())
for i in range(P):
    put(f"line {i + 1}", lambda vit: vit.patches[shown, i * P:(i + 1) * P], 2)
for name, row in (("CLS", lambda vit: vit.cls[0]), ("+ position", lambda vit: vit.positions[0]),
                  ("= z_0", lambda vit: vit.z[0]), ("patch", lambda vit: vit.tokens[shown]),
                  ("+ position", lambda vit: vit.positions[shown + 1]), ("= z_0", lambda vit: vit.z[shown + 1])):
    put(name, lambda vit: row(vit)[:SHOWN], 3)
for name, token in ("CLS", 0), ("patch", shown + 1):
    put(f"h {name}", lambda vit: vit.layers[0]["h"][token, :SHOWN], 3)
    for matrix in "qkv":
        put(f"{matrix} {name}", lambda vit: vit.layers[0][matrix][head, token, :SHOWN], 3)
put_grid(lambda vit: vit.layers[0]["scores"][head, 0], 2)
put_grid(lambda vit: vit.layers[0]["a"][head, 0], 1, 100)
put("SA CLS", lambda vit: vit.layers[0]["sa"][head, 0, :SHOWN], 3)
for i in range(K):
    best = int(right.layers[0]["a"][i, 0, 1:].argmax())
    put(f"head {i} patch {best + 1}", lambda vit: vit.layers[0]["a"][i, 0, best + 1], 1, 100)
    lines[-1] += " %"
put("z_0 CLS", lambda vit: vit.z[0, :SHOWN], 3)
put("y CLS", lambda vit: vit.layers[0]["y"][0, :SHOWN], 3)
for rank in range(min(BEST, len(config["id2label"]))):
    best = answer(right, rank)
    put(label(best), lambda vit: vit.probability[best], 1, 100)
    lines[-1] += " %"
put_grid(lambda vit: vit.layers[-1]["a"][:, 0].mean(0), 1, 100)

for name, erratum in ("k = h W^k", "right"), ("k = h W^q", "k = v = q"):
    layer = exact[erratum].layers[0]
    itself = int((layer["a"].argmax(-1) == torch.arange(N + 1)).sum())
    put(f"{name} max |S_ij - S_ji|", lambda vit: (vit.layers[0]["products"] - vit.layers[0]["products"].mT)[head].abs().max(),
        2, erratum=erratum)
    lines[-1] += f" to itself {itself} of {K * (N + 1)}"
for width, erratum in (D_h, "right"), (D, "scale √D"):
    put(f"√{width}", lambda vit: entropy(vit.layers[0]["a"]).mean(1), 2, erratum=erratum)
for name, columns in (("z (N + 1) x D", D), ("q_i, k_i, v_i (N + 1) x D_h", D_h), ("A_i (N + 1) x (N + 1)", N + 1),
                      ("SA_i(z) = A_i v_i (N + 1) x D_h", D_h), ("[SA_1, ..., SA_K] (N + 1) x K D_h", K * D_h),
                      ("[SA_1, ..., SA_K] W^O (N + 1) x D", D)):
    lines.append(f"vit|{name} {N + 1} x {columns}")
for erratum in ERRATA:
    best = answer(exact[erratum])
    put(f"{erratum} {label(best)}", lambda vit: vit.probability[[best, answer(right)]], 1, 100, erratum=erratum)
    *words, a, b = lines[-1].split(" ")
    lines[-1] = " ".join(words) + f" {a} % {b} %"

unsure = [line for line in lines if "?" in line]
assert len(unsure) * 20 <= len(lines), f"too many lines that f32 may round either way: {unsure}"
figures.write_text("".join(line + "\n" for line in lines if line not in unsure), encoding="utf-8")
print(len(lines) - len(unsure), "lines in", figures)
print("left out, since f32 may round them either way (the golden texts have them):", *unsure, sep="\n  ")
