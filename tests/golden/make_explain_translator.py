#!/usr/bin/env python3
"""Writes tests/golden/explain/figures_translator.txt: the figures of the translator that `attend explain block` must show,
computed by PyTorch in float64 from the weights in models/tatoeba-de-en. A line is block|LABEL NUMBERS, as in
make_explain.py.
Usage: python3 tests/golden/make_explain_translator.py"""
import json
import pathlib
import numpy
import torch

root = pathlib.Path(__file__).parents[2]
folder = root / "models" / "tatoeba-de-en"
lines = []
data = (folder / "model.safetensors").read_bytes()
begin = 8 + int.from_bytes(data[:8], "little")
weight = {}
for name, entry in json.loads(data[8:begin]).items():
    if name != "__metadata__":
        assert entry["dtype"] == "F16"
        from_byte, to_byte = (begin + offset for offset in entry["data_offsets"])
        values = numpy.frombuffer(data[from_byte:to_byte], dtype="<f2").astype("f8")
        weight[name] = torch.from_numpy(values).reshape(entry["shape"])
ids = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
tokens = {i: token for token, i in ids.items()}
E, bias = weight["model.shared.weight"], weight["final_logits_bias"][0]


def apply_linear(name, x):
    return x @ weight[f"{name}.weight"].T + weight[f"{name}.bias"]


def multi_head(name, x, source, allowed=None):
    q, k, v = (apply_linear(f"{name}.{part}_proj", rows).unflatten(1, (4, 64)).transpose(0, 1)
               for part, rows in (("q", x), ("k", source), ("v", source)))
    scores = q @ k.mT / 64**0.5
    weights = torch.softmax(scores if allowed is None else scores.masked_fill(~allowed, -torch.inf), -1)
    return apply_linear(f"{name}.out_proj", (weights @ v).transpose(0, 1).flatten(1))


def sublayer(name, x, result, lacks):
    x = x if result is None else result if lacks == "residual" else x + result
    if lacks == "layer norm":
        return x
    return torch.nn.functional.layer_norm(x, (256,), weight[f"{name}.weight"], weight[f"{name}.bias"])


def translator_layer(name, x, lacks=None, source=None):
    past_only = torch.ones(len(x), len(x)).bool().tril() if source is not None else None
    a = None if lacks == "self-attention" else multi_head(f"{name}.self_attn", x, x, past_only)
    y = sublayer(f"{name}.self_attn_layer_norm", x, a, lacks)
    if source is not None:
        cross = None if lacks == "cross-attention" else multi_head(f"{name}.encoder_attn", y, source)
        y = sublayer(f"{name}.encoder_attn_layer_norm", y, cross, lacks)
    h = apply_linear(f"{name}.fc1", y).relu()
    f = apply_linear(f"{name}.fc2", h)
    return sublayer(f"{name}.final_layer_norm", y, None if lacks == "feed-forward" else f, lacks), a, y, h, f


def embedded(names):
    angle = torch.arange(len(names)).double()[:, None] / 10000 ** (torch.arange(0, 256, 2) / 256)
    return E[[ids[name] for name in names]] * 16 + torch.cat([angle.sin(), angle.cos()], 1)


def translator_logits(source, reads, lacks=None, depth=3):
    s, t = embedded(source), embedded(reads)
    for i in range(3):
        s = translator_layer(f"model.encoder.layers.{i}", s, lacks)[0]
    for i in range(depth):
        t = translator_layer(f"model.decoder.layers.{i}", t, lacks, s)[0]
    return t @ E.T + bias


def rounded_to(x, digits, error=2e-5):
    x = float(x)
    from_tie = abs(abs(x) * 10**digits % 1 - 0.5) * 10.0**-digits
    assert from_tie > error * abs(x), f"{x}: f32 may round digit {digits} either way"
    return f"{x:.{digits}f}"


source = ["▁Sie", "▁liest", "▁ein", "▁Buch", ".", "</s>"]
lines.append("block|" + " ".join(source))
s = embedded(source)
for i in range(3):
    after, a, y, h, f = translator_layer(f"model.encoder.layers.{i}", s)
    sizes = " ".join(rounded_to(rows.square().mean().sqrt(), 3) for rows in (s, a, y, f))
    lines.append(f"block|{i + 1} {sizes} {100 * (h != 0).double().mean():.1f} %")
    s = after
reads = ["<pad>"]
while reads[-1] != "</s>":
    reads.append(tokens[int(translator_logits(source, reads)[-1].argmax())])
reads, writes = reads[:-1], [ids[name] for name in reads[1:]]
after = [torch.softmax(translator_logits(source, reads, depth=depth), -1).max(-1) for depth in (1, 2, 3)]
for i, name in enumerate(reads):
    best = " ".join(f"{tokens[int(depth.indices[i])]} {rounded_to(depth.values[i], 2)}" for depth in after)
    lines.append(f"block|{name if i else '(start)'} {best}")
for lacks in None, "feed-forward", "self-attention", "cross-attention", "residual", "layer norm":
    log_p = torch.log_softmax(translator_logits(source, reads, lacks), -1)
    right = (log_p.argmax(-1) == torch.tensor(writes)).sum()
    loss = -log_p[range(len(writes)), writes].sum()
    label = f"no {lacks}" if lacks else "all parts"
    shown = rounded_to(loss, 1, 2e-6) if loss < 1000 else "> 1000"
    lines.append(f"block|{label} {shown} {right} of {len(writes)}")

path = root / "tests" / "golden" / "explain" / "figures_translator.txt"
path.write_text("\n".join(lines) + "\n", encoding="utf-8")
print(len(lines), "lines in", path)
