#!/usr/bin/env python3
"""Writes tests/golden/explain/figures_captioning.txt: the figures that `attend explain captioning` must show, computed
by PyTorch in float64 from the weights in models/flickr8k-captions, and the caption, by a beam search of its own. A line
is captioning|LABEL NUMBERS, as in make_explain.py.
Usage: python3 tests/golden/make_explain_captioning.py [MODEL_FOLDER PICTURE FIGURES_FILE]"""
import json
import pathlib
import sys
import numpy
import torch
from PIL import Image
from torch.nn import functional as F

root = pathlib.Path(__file__).parents[2]
folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "models" / "flickr8k-captions"
picture = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else folder / "examples" / "astronaut.png"
figures = root / "tests" / "golden" / "explain" / "figures_captioning.txt"
figures = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else figures
SHOWN, BEST, BEAM, ACROSS, GAP = 6, 3, 5, 74, 2

config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
preprocessor = json.loads((folder / "preprocessor_config.json").read_text(encoding="utf-8"))
words = json.loads((folder / "words.json").read_text(encoding="utf-8"))["words"]
STAGES, UNKNOWN, END = len(config["channels"]), config["unk_token_id"], config["eos_token_id"]
E, D, WORDS = config["embedding_size"], config["hidden_size"], config["max_positions"]


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
    """[1, C, H, W], normalized."""
    image = Image.open(picture).convert("RGB")
    size = preprocessor["size"]
    assert image.size == (size["width"], size["height"]), "a picture of the model's own size"
    x = torch.from_numpy(numpy.array(image)).double().permute(2, 0, 1)
    mean, deviation = (torch.tensor(preprocessor[name]).double()[:, None, None] for name in ("image_mean", "image_std"))
    return ((x / 255 - mean) / deviation)[None]


class Captioner:
    """The formulas in one precision, by the names in the file."""

    def __init__(self, dtype):
        self.w = {name: value.to(dtype) for name, value in read_weights().items()}
        x = read_pixels().to(dtype)
        for s in range(STAGES):
            for k in range(2):
                y = self.convolve(s, k, x)
                x = x + y if k else F.max_pool2d(y, 2)
        self.grid = x.shape[2:]
        self.x = x[0].flatten(1).T
        self.h = torch.tanh(self.linear("project", self.x))
        self.k = self.linear("attention.key", self.h)
        self.c = self.h.mean(0)
        self.first = torch.tanh(self.linear("bridge.0", self.c))

    def linear(self, name, x):
        y = x @ self.w[name + ".weight"].T
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def convolve(self, s, k, x):
        norm = [self.w[f"encoder.{s}.norm{k}.{n}"] for n in ("running_mean", "running_var", "weight", "bias")]
        return F.relu(F.batch_norm(F.conv2d(x, self.w[f"encoder.{s}.conv{k}.weight"], padding=1), *norm))

    def step(self, s, before):
        """What attention computes of the state s, and the next state and logits."""
        q = self.linear("attention.query", s)
        tanh = torch.tanh(q + self.k)
        e = tanh @ self.w["attention.score"][0]
        a = torch.softmax(e, 0)
        c = a @ self.h
        gate = torch.sigmoid(self.linear("attention.gate", s)) if config["gate"] else torch.ones_like(s[:1])
        x = torch.cat([self.w["target.weight"][before] * E**0.5, gate * c])
        gru = [self.w[f"decoder.{n}_l0"] for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        after = torch.gru_cell(x[None], s[None], *gru)[0]
        y = torch.tanh(self.linear("readout", torch.cat([gate * c, after])))
        logits = self.w["target.weight"] @ y + self.w["output.bias"]
        return dict(q=q, tanh=tanh, e=e, a=a, c=c, gate=gate, after=after, logits=logits)

    def search(self):
        """The ids of the best caption by log probability / (words + 1): beam search without <unk>, one word or more."""
        beams, done = [(0.0, [], self.first)], []
        for n in range(WORDS + 1):
            candidates = []
            for score, ids, s in beams:
                r = self.step(s, ids[-1] if ids else END)
                p = torch.log_softmax(r["logits"], 0)
                p[UNKNOWN] = -torch.inf
                p[END] = p[END] if ids else -torch.inf
                candidates += [(score + p[i].item(), ids + [int(i)], r["after"]) for i in p.topk(2 * BEAM).indices]
            candidates = sorted(candidates, key=lambda c: -c[0])[:2 * BEAM]
            done += [(score / len(ids), ids[:-1]) for score, ids, _ in candidates[:BEAM] if ids[-1] == END]
            beams = [c for c in candidates if c[1][-1] != END and len(c[1]) <= WORDS][:BEAM]
        return max(done)[1]

    def write(self, ids):
        s = self.first
        self.steps = []
        for i, word in enumerate(ids):
            self.steps.append(self.step(s, ids[i - 1] if i else END))
            s = self.steps[-1]["after"]


lines = []
exact, single = Captioner(torch.float64), Captioner(torch.float32)
caption = exact.search()
exact.write(caption), single.write(caption)
T, (H, W) = len(caption), exact.grid


def rounded(x, error, digits):
    """x, and "?" after it if f32 may round its last digit either way. error 0: f32 has x itself, a weight."""
    from_tie = abs(abs(x) * 10**digits % 1 - 0.5) * 10.0**-digits
    return f"{0.0 if abs(x) < 0.5 * 10.0**-digits else x:.{digits}f}" + ("?" if error and from_tie <= error else "")


def numbers(of, digits, scale=1):
    """What `of` computes from a Captioner. The error of f32 is bounded by four times that of PyTorch's and a rounding."""
    x, y = (scale * torch.atleast_1d(of(m)).double() for m in (exact, single))
    error = 0 if torch.equal(x, y) else 4 * (x - y).abs().max().item() + 2.0**-23 * x.abs().max().item()
    return [rounded(value, error, digits) for value in x.tolist()]


def put(label, of, digits):
    lines.append(" ".join([label, *numbers(of, digits)]))


def put_grid(of, digits, scale=1):
    for row in range(H):
        lines.append(" ".join([f"row {row + 1}", *numbers(lambda m: of(m).reshape(H, W)[row], digits, scale)]))


def at(i):
    return f"{i // W + 1},{i % W + 1}"


def all_steps(m, name):
    return torch.stack([step[name] for step in m.steps])


for i in 0, H * W // 2 + W // 2, H * W - 1:
    put(f"h_{at(i)}", lambda m: m.h[i, :SHOWN], 3)
put("c", lambda m: m.c[:SHOWN], 3)
put("s_0", lambda m: m.first[:SHOWN], 3)
lines.append(" ".join(words[i] for i in caption))

entropy = [-(step["a"] * step["a"].log2()).sum().item() for step in exact.steps]
t = entropy.index(min(entropy))
put_grid(lambda m: m.steps[t]["e"], 2)
best = int(exact.steps[t]["e"].argmax())
put("q", lambda m: m.steps[t]["q"][:SHOWN], 3)
put(f"k_{at(best)}", lambda m: m.k[best, :SHOWN], 3)
put("tanh", lambda m: m.steps[t]["tanh"][best, :SHOWN], 3)
put("v", lambda m: m.w["attention.score"][0, :SHOWN], 3)
put("v tanh", lambda m: (m.steps[t]["tanh"][best] * m.w["attention.score"][0])[:SHOWN], 3)
put_grid(lambda m: m.steps[t]["a"], 1, 100)
lines.append("Σ a = 1.0000")
put(f"c_{t + 1}", lambda m: m.steps[t]["c"][:SHOWN], 3)
if config["gate"]:
    put(f"β_{t + 1}", lambda m: m.steps[t]["gate"], 4)
for i in exact.steps[t]["logits"].topk(BEST).indices.tolist():
    name = words[i] if i < len(words) else "(end)" if i == END else "<unk>"
    put(name, lambda m: 100 * torch.softmax(m.steps[t]["logits"], 0)[i], 1)
    lines[-1] += " %"

# The maps, in blocks of as many words as fit
width = max([8, 2 * W] + [len(words[i]) for i in caption if len(words[i]) <= 16]) + GAP
largest = all_steps(exact, "a").max()
for first in range(0, T, ACROSS // width):
    block = range(first, min(T, first + ACROSS // width))
    lines.append(" ".join(words[caption[i]] for i in block))
    for row in range(H):
        shades = []
        for i in block:
            level = 5 * exact.steps[i]["a"].reshape(H, W)[row] / largest
            near = ((level - level.round()).abs() < 1e-3) & (level.round() > 0) & (level.round() < 5)
            shades.append("".join("·░▒▓█"[min(int(x), 4)] * 2 for x in level) + ("?" if near.any() else ""))
        lines.append(" ".join(shades))
    lines.append(" ".join(f"{x} %" for i in block for x in numbers(lambda m: m.steps[i]["a"].max(), 1, 100)))
    if config["gate"]:
        lines.append(" ".join(f"β {x}" for i in block for x in numbers(lambda m: m.steps[i]["gate"], 2)))

put_grid(lambda m: all_steps(m, "a").sum(0), 2)
for i, word in enumerate(caption):
    by_column = torch.softmax(exact.steps[i]["e"].reshape(H, W), 0).sum().item()
    over_words = numbers(lambda m: torch.softmax(all_steps(m, "e"), 0)[i].sum(), 3)[0]
    lines.append(f"{words[word]} {exact.steps[i]['a'].sum().item():.3f} {by_column:.3f} {over_words}")
for name, rows, columns in (("X N x D_x", H * W, exact.x.shape[1]), ("Q M x D_k", T, D), ("K N x D_k", H * W, D),
                            ("V N x D_v", H * W, D), ("E, A M x N", T, H * W), ("Y = A V M x D_v", T, D)):
    lines.append(f"{name} {rows} x {columns}")

unsure = [line for line in lines if "?" in line]
assert len(unsure) * 20 <= len(lines), f"too many lines that f32 may round either way: {unsure}"
figures.write_text("".join(f"captioning|{line}\n" for line in lines if line not in unsure), encoding="utf-8")
print(len(lines) - len(unsure), "lines in", figures)
print("left out, since f32 may round them either way (the golden texts have them):", *unsure, sep="\n  ")
