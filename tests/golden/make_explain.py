#!/usr/bin/env python3
"""Writes tests/golden/explain/figures.txt: the figures that the chapters of `attend explain` must show, computed by
PyTorch. A line is CHAPTER|LABEL NUMBERS, and must stand in the chapter as a whole line, spaces aside.
Usage: python3 tests/golden/make_explain.py"""
import pathlib
import random
import numpy
import torch

torch.set_default_dtype(torch.float64)
lines = []


def text(x, digits=4):
    x = float(torch.as_tensor(x).detach())
    if x != x or x in (float("inf"), float("-inf")):
        return "NaN" if x != x else "inf" if x > 0 else "-inf"
    from_tie = abs(abs(x) * 10**digits % 1 - 0.5) * 10.0**-digits
    assert abs(x) >= 1e5 or from_tie > 2.5 * 2**-23 * abs(x), f"{x}: f32 may round decimal {digits} either way"
    x = 0.0 if abs(x) < 0.5 * 10.0**-digits else x  # no -0
    return f"{x:.{digits}f}" if abs(x) < 1e5 else f"{x:.3e}"


def show(chapter, label, numbers, digits=4):
    lines.append(f"{chapter}|{label} " + " ".join(text(x, digits) for x in numbers))


def table(chapter, labels, matrix, digits=4):
    for label, row in zip(labels, matrix):
        show(chapter, label, row, digits)


# simplified: "shiny" asks
words = ["Hello", "shiny", "sun"]
x = torch.tensor([[0.34, 0.22, 0.54], [0.53, 0.34, 0.98], [0.29, 0.54, 0.93]])
s = x @ x[1]
w = torch.softmax(s, -1)
for j, word in enumerate(words):
    products = " + ".join(f"{a:.4g}×{b:.4g}" for a, b in zip(x[1].tolist(), x[j].tolist()))
    lines.append(f"simplified|shiny · {word} = {products} = {text(s[j])}")
show("simplified", "s", s)
show("simplified", "exp(s)", s.exp())
show("simplified", "w", w)
lines.append(f"simplified|Σ exp(s) = {text(s.exp().sum())} Σ w = {text(w.sum())}")
table("simplified", words, w[:, None] * x)
show("simplified", "c", w @ x)
show("simplified", "out", w @ x)
source_w = torch.tensor([0.2291, 0.4064, 0.3645])
rounded = (source_w[:, None] * x * 1e4).round() / 1e4
source = torch.tensor([[0.0779, 0.0504, 0.1237], [0.2156, 0.1382, 0.3983], [0.1057, 0.1972, 0.3390]])
table("simplified", words, rounded)
show("simplified", "sum", rounded.sum(0))
table("simplified", words, source)
show("simplified", "sum", source.sum(0))
for i, j in (rounded - source).abs().gt(5e-5).nonzero().tolist():
    lines.append(f"simplified|{words[i]} {source_w[i]:.4f} × {x[i, j]:.2f} = {rounded[i, j]:.4f} ≠ {source[i, j]:.4f}")

# softmax: "journey" asks, then all
words = ["Your", "journey", "starts", "with", "one", "step"]
x = torch.tensor([[0.43, 0.15, 0.89], [0.55, 0.87, 0.66], [0.57, 0.85, 0.64],
                  [0.22, 0.58, 0.33], [0.77, 0.25, 0.10], [0.05, 0.80, 0.55]])
s = x @ x[1]
show("softmax", "s", s)
show("softmax", "w", s / s.sum())
show("softmax", "exp(s)", s.exp())
show("softmax", "w", torch.softmax(s, -1))
large = 100 * s
naive = large.float().exp()
show("softmax", "s", large)
show("softmax", "exp(s)", naive)
show("softmax", "w", naive / naive.sum())
show("softmax", "w", torch.softmax(large, -1))
show("softmax", "c", torch.softmax(s, -1) @ x)
S = x @ x.T
W = torch.softmax(S, -1)
table("softmax", words, S)
table("softmax", words, W)
table("softmax", words, W @ x)
show("softmax", "Σ_j w_ij", W.sum(1))
show("softmax", "Σ_j w_ij", torch.softmax(S, 0).sum(1))

# mixture: four people, from Python's own generator
random.seed(0)
people = [[random.randint(*bounds) for bounds in ((160, 200), (60, 80), (20, 80))] for _ in range(4)]
X = torch.tensor(people, dtype=torch.float64)
f = X.sum(1)
assert f.tolist() == [279, 303, 304, 337]
table("mixture", "abcd", X, 2)
lines.append("mixture|f " + " ".join(f"{total:.4f}" for total in f))  # whole numbers, exact in f32
show("mixture", "ratio", f / f[0])
distances = (X - X[0]).norm(dim=1).float().tolist()  # rounded once, from double
lines.append("mixture|distance " + " ".join(f"{value:.4f}" for value in distances))
by_hand = torch.tensor([0.6, 0.3, 0.05, 0.05])
show("mixture", "w", by_hand)
for name, row in zip("abcd", (by_hand[:, None] * X).tolist()):
    lines.append(f"mixture|{name} " + " ".join(f"{value:.2f}" for value in row))  # all have two decimals
show("mixture", "new a", by_hand @ X, 2)
a, b, c, d = people
new_a = [0.6 * a[i] + 0.3 * b[i] + 0.05 * (c[i] + d[i]) for i in range(3)]
assert new_a == [181.54999999999998, 73.94999999999999, 34.85]
lines.append("mixture|" + " ".join(repr(value) for value in new_a))
raw = X @ X[0]
lines.append("mixture|s " + " ".join(f"{score:.4f}" for score in raw))  # exact, too
show("mixture", "w", torch.softmax(raw, 0))
Z = (X - X.mean(0)) / X.std(0, correction=0)
table("mixture", "abcd", Z)
s = Z @ Z.T / 3**0.5
new = torch.softmax(s, 1) @ X
show("mixture", "s", s[0])
show("mixture", "w", torch.softmax(s[0], 0))
show("mixture", "by hand", by_hand)
show("mixture", "new a", new[0], 2)
for t in 0.1, 0.5, 1, 2, 10:
    show("mixture", f"τ = {t:g}", torch.softmax(s[0] / t, 0))
show("mixture", "ln w", by_hand.log())
for t in 10, 20, 40:
    show("mixture", f"T = {t}", torch.softmax(-(f - f[0]).abs() / t, 0))
table("mixture", "abcd", new, 2)
show("mixture", "s", Z[:, 2] * Z[0, 2])
show("mixture", "w", torch.softmax(Z[:, 2] * Z[0, 2], 0))


# The chapters with weights: torch.nn's own, which are drawn in f32.
def linear(d_in, d_out, bias=False):
    return torch.nn.Linear(d_in, d_out, bias=bias, dtype=torch.float32).double()


def seeded(seed, d_in=3, d_out=2):
    """W_q, W_k, W_v, in the order of the source's constructors."""
    torch.manual_seed(seed)
    return [linear(d_in, d_out).weight.detach() for _ in range(3)]


def side_by_side(chapter, *matrices):
    table(chapter, words, torch.cat(matrices, -1))


def attend(q, k, v, allowed=None):
    """Scores before the mask, weights, contexts."""
    s = q @ k.mT / k.shape[-1] ** 0.5
    w = torch.softmax(s if allowed is None else s.masked_fill(~allowed, -torch.inf), -1)
    return s, w, w @ v


# trainable
W = [w.requires_grad_() for w in seeded(789)]
draws = numpy.frombuffer(numpy.random.RandomState(789).bytes(12), dtype="<u4").tolist()
for draw, weight in zip(draws, W[0].flatten()):
    low = draw % 2**24
    lines.append(f"trainable|{draw} mod 2^24 = {low} u = {text(low / 2**24)} w = {text(weight)}")
for name, w in zip("qkv", W):
    table("trainable", [f"W_{name} 1", f"W_{name} 2"], w)
q, k, v = (x @ w.T for w in W)
side_by_side("trainable", q, k, v)
s, w, c = attend(q, k, v)
for j, word in enumerate(words):
    products = " + ".join(f"{text(a)}×{text(b)}" for a, b in zip(q[1], k[j]))
    lines.append(f"trainable|journey · {word} = {products} = {text(q[1] @ k[j])}")
table("trainable", words, s)
table("trainable", words, w)
table("trainable", words, c)
losses = []
for step in range(1001):
    q, k, v = (x @ w.T for w in W)
    loss = 0.5 * (attend(q, k, v)[2] - x[:, :2]).square().sum()
    gradients = torch.autograd.grad(loss, W)
    if step == 0:
        show("trainable", "L", [loss])
        for name, d in zip("qkv", gradients):
            table("trainable", [f"dW_{name} 1", f"dW_{name} 2"], d)
    if step in (0, 1, 2, 5, 10, 100, 1000):
        losses.append(loss)
    W = [(w - 0.1 * d).detach().requires_grad_() for w, d in zip(W, gradients)]
show("trainable", "L", losses)

# causal
W = seeded(123)
q, k, v = (x @ w.T for w in W)
side_by_side("causal", q, k, v)
past = torch.ones(6, 6).bool().tril()
s, w, c = attend(q, k, v, past)
table("causal", words, attend(q, k, v)[0])
table("causal", words, s.masked_fill(~past, -torch.inf))
table("causal", words, torch.cat([w, w.sum(1, keepdim=True)], 1))
table("causal", words, c)
keys_in_rows = (k @ q.T / 2**0.5).masked_fill(torch.ones(6, 6).bool().tril(-1), -torch.inf)
table("causal", words, torch.softmax(keys_in_rows, 0))
afterwards = torch.softmax(s, -1) * past
table("causal", words, torch.cat([afterwards, afterwards.sum(1, keepdim=True)], 1))
leaking = s.clone()
leaking[:-1, -1] = 200
leaking = torch.softmax(leaking.float(), -1) * past
table("causal", words, leaking / leaking.sum(1, keepdim=True))
largest = torch.finfo(torch.float32).max
spoiled = torch.softmax(s, -1).masked_fill(~past, -largest) @ v
table("causal", words, spoiled.masked_fill(spoiled > largest, torch.inf))
product = torch.triu(torch.ones(6, 6), 1) * -torch.inf
table("causal", words, product)
table("causal", words, torch.softmax(s + product, -1))
table("causal", words, torch.cat([c, c], 1))
cut = c.clone()
cut[4:] = 0
table("causal", words, torch.cat([c, cut], 1))


def causal_losses(cut):
    """The gradients of the first step, and the losses of 1001."""
    W = [w.requires_grad_() for w in seeded(123)]
    losses = []
    for step in range(1001):
        q, k, v = (x @ w.T for w in W)
        weights = attend(q, k, v, past)[1]
        loss = 0.5 * ((weights.data if cut else weights) @ v - x[:, :2]).square().sum()
        gradients = torch.autograd.grad(loss, W, allow_unused=cut)
        first = gradients if step == 0 else first
        if step in (0, 10, 100, 1000):
            losses.append(loss)
        W = [w if d is None else (w - 0.1 * d).detach().requires_grad_() for w, d in zip(W, gradients)]
    return first, losses


for cut, label in (False, "all"), (True, ".data"):
    gradients, losses = causal_losses(cut)
    for name, d in zip("qkv", gradients):
        if d is None:
            lines.append(f"causal|dW_{name} NULL")
        else:
            table("causal", [f"dW_{name} 1", f"dW_{name} 2"], d)
    show("causal", label, losses)
padding = torch.tensor([False, False, False, False, True, True]).expand(6, 6)
table("causal", words, attend(q, k, v, padding)[1])
table("causal", words, attend(q, k, v, ~padding)[1])

# dropout: PyTorch's mask by its definition, since PyTorch lets MKL draw it on some processors; then the library's, from
# Philox4x32-10 as attend.h describes it. The weights are those of causal.
def philox(key, counter):
    low, high = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [b >> 32 ^ counter[1] ^ low, b & 0xFFFFFFFF, a >> 32 ^ counter[3] ^ high, a & 0xFFFFFFFF]
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return counter


def kept(seed, sequence, p):
    words_of = lambda i, j: philox(seed, [i, j // 4, 0, sequence])
    return torch.tensor([[words_of(i, j)[j % 4] >= round(p * 2**32) for j in range(6)] for i in range(6)])


table("dropout", words, w)
torch.manual_seed(123)
mask = 2 * (torch.rand(6, 6) < 0.5).double()
table("dropout", words, mask)
table("dropout", words, mask * w)
table("dropout", words, mask * w @ v)
draws = 2 * (torch.rand(10000, 2) < 0.5).double()
averages = [draws[:count].mean(0) * w[1, :2] for count in (1, 10, 100, 1000, 10000)] + [w[1, :2]]
table("dropout", words, torch.stack(averages, 1))
for sequence in 7, 3:
    table("dropout", words, 2 * kept(123, sequence, 0.5) * w)

# multi-head: the source's class, then nn.MultiheadAttention
W = seeded(123)
out_proj = linear(2, 2, bias=True)
q, k, v = (x @ w.T for w in W)
side_by_side("multi-head", q, k, v)
table("multi-head", ["W_o 1", "W_o 2"], out_proj.weight)
show("multi-head", "b_o", out_proj.bias)
heads = [attend(q[:, h:h + 1], k[:, h:h + 1], v[:, h:h + 1], past) for h in range(2)]
for head in heads:
    table("multi-head", words, head[1])
c = torch.cat([head[2] for head in heads], 1)
table("multi-head", words, c)
table("multi-head", words, out_proj(c))
ours = torch.nn.MultiheadAttention(2, 2, kdim=3, vdim=3, batch_first=True)
parameters = {"q_proj_weight": torch.eye(2), "k_proj_weight": W[1], "v_proj_weight": W[2],
              "in_proj_bias": torch.zeros(6), "out_proj.weight": out_proj.weight, "out_proj.bias": out_proj.bias}
ours.load_state_dict(parameters)
assert torch.allclose(ours(q, x, x, attn_mask=~past)[0], out_proj(c)), "the class and nn.MultiheadAttention differ"
torch.manual_seed(123)
module = torch.nn.MultiheadAttention(3, 3, batch_first=True, dtype=torch.float32).double()
table("multi-head", words, module(x, x, x)[0])
below = torch.cat([head[2] for head in heads], 0)
assert list(below.shape) == [12, 1]
lines.append("multi-head|below [12, 1]")
table("multi-head", words, below.reshape(6, 2))
back = [attend(*(a.flip(0)[:, h:h + 1] for a in (q, k, v)), past)[2] for h in range(2)]
attention_output, _ = torch.stack([c, torch.cat(back, 1)])
table("multi-head", words, attention_output)
table("multi-head", words[::-1], _)
for batch in 1, 3:
    try:
        attention_output, _ = torch.zeros(batch, 6, 2)
    except ValueError as error:
        lines.append(f"multi-head|batch {batch} ValueError: {error}")
for h in range(2):
    products = " + ".join(f"{a:.4g}×{text(b)}" for a, b in zip(x[1].tolist(), W[0][h]))
    lines.append(f"multi-head|head {h + 1}: q = {products} = {text(q[1, h])}")


class Unregistered(torch.nn.Module):
    """The heads of a published class, with its list or with nn.ModuleList."""

    def __init__(self, container, bias):
        super().__init__()
        for name, weight in zip("qkv", W):
            layers = container([torch.nn.Linear(3, 1, bias=bias) for _ in range(2)])
            for h, one in enumerate(layers):
                one.weight.data = weight[h:h + 1].clone()
            setattr(self, name, layers)
        self.out_proj = torch.nn.Linear(2, 2)
        self.out_proj.load_state_dict(out_proj.state_dict())

    def forward(self, x):
        rows = ([x @ one.weight.T for one in layers] for layers in (self.q, self.k, self.v))
        return self.out_proj(torch.cat([attend(*head, past)[2] for head in zip(*rows)], 1))


class Uninitialized(torch.nn.Module):
    def __init__(self):
        self.attention_func = torch.nn.Linear(1, 1)


try:
    Uninitialized()
except AttributeError as error:
    lines.append(f"multi-head|AttributeError: {error}")
for container, count in (torch.nn.ModuleList, 14), (list, 2):
    assert len(list(Unregistered(container, True).parameters())) == count
    module = Unregistered(container, False)
    losses = []
    for step in range(301):
        module.zero_grad()
        loss = 0.5 * (module(x) - x[:, :2]).square().sum()
        loss.backward()
        if step in (0, 10, 100, 300):
            losses.append(loss)
        with torch.no_grad():
            for parameter in module.parameters():
                if parameter.grad is not None:
                    parameter -= 0.1 * parameter.grad
    show("multi-head", container.__name__, losses)
lines.append("multi-head|[1, 2, 4]")
lines.append("multi-head|[1, 4, 2]")

# general-layer
def uniform(rows, columns):
    return torch.empty(rows, columns, dtype=torch.float32).uniform_(-1, 1).double()


torch.manual_seed(231)
states = ["h_1", "h_2", "h_3"]
q, w_k, w_v, w_q = uniform(3, 2), uniform(3, 2), uniform(3, 3), uniform(3, 2)
table("general-layer", states, q)
k, v = x @ w_k, x @ w_v
table("general-layer", words, k)
table("general-layer", words, v)
e, a, y = attend(q, k, v)
table("general-layer", words, e.T)
table("general-layer", words, a.T)
table("general-layer", states, y)
table("general-layer", words, attend(x @ w_q, k, v)[2])
reversed_x = x.flip(0)
table("general-layer", words[::-1], attend(reversed_x @ w_q, reversed_x @ w_k, reversed_x @ w_v)[2])
t = torch.arange(6.0)
odd = torch.stack([t.sin(), t.cos(), (t / 10000 ** (2 / 3)).sin()], 1)
table("general-layer", words, odd)

# positions
def positions(t, d, first=0):
    angle = torch.tensor(t, dtype=torch.float64)[:, None] / 10000 ** (2 * torch.arange(first, first + d // 2) / d)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


names = [f"{f} t{slower}" for slower in ("", "/10", "/100", "/1000") for f in ("sin", "cos")]
for name, row in zip(names, positions(range(6), 8).T):  # rounded once, from double, so no decimal is in doubt
    lines.append(f"positions|{name} " + " ".join(f"{value:.4f}" for value in row.float().tolist()))
for first in 0, 1:
    show("positions", f"k from {first}", [10.0 ** -(k + first) for k in range(4)])
for d in 8, 512:
    show("positions", f"d = {d}", [positions([0, 1], d, first).diff(dim=0).norm() for first in (0, 1)])
many = positions(range(1000), 8)
apart = torch.cdist(many, many, compute_mode="donot_use_mm_for_euclid_dist")
one_wave = torch.cdist(many[:, :2], many[:, :2], compute_mode="donot_use_mm_for_euclid_dist")
for label, digits, distances in ("sin t, cos t", 6, one_wave), ("p(t)", 4, apart):
    near, where = min((row[i + 1:].min(0) for i, row in enumerate(distances[:-1])), key=lambda found: found[0])
    lines.append(f"positions|{label} {near:.{digits}f} t, t + {where + 1}")
for delta in 1, 2, 3, 6, 63:
    off = apart.diagonal(delta)
    show("positions", f"t, t + {delta}", [off.min(), off.max(), off[0]])
for t in 0, 1000, 1000000, 1000000000:
    here, there = positions([t, t + 1], 8)
    show("positions", f"t = {t}", [here.abs().max(), (there - here).norm()])
step = positions([0, 1], 8).diff(dim=0).norm()
table("positions", ["t", "t / (n-1)", "p(t)"], [[5, 1, 99, 1], [1, 1 / 5, 1, 1 / 99], [1, step, 1, step]])
table("positions", words, x + odd)
table("positions", words, torch.cat([x, positions(range(6), 2)], 1))

# scores
W = seeded(789)
v_score = linear(2, 1).weight[0]
q, k, v = (x @ w.T for w in W)
side_by_side("scores", q, k, v)
table("scores", ["M 1", "M 2", "M 3"], W[0].T @ W[1])
show("scores", "v", v_score)
pairs = q[:, None] + k[None]
for s in q @ k.T, q @ k.T / 2**0.5, x @ W[0].T @ W[1] @ x.T, pairs.tanh() @ v_score, -torch.cdist(q, k, p=1):
    show("scores", "s", s[1])
    show("scores", "w", torch.softmax(s, -1)[1])
for d in 4, 16, 64, 256, 1024:
    torch.manual_seed(123)
    q, k = (torch.empty(64, d, dtype=torch.float32).uniform_(-3**0.5, 3**0.5).double() for _ in range(2))
    figures = [(s.var(correction=0), torch.softmax(s, -1).amax(1).mean()) for s in (q @ k.T, q @ k.T / d**0.5)]
    (a, b), (c, e) = figures
    lines.append(f"scores|{d} {a:.2f} {b:.4f} {c:.4f} {e:.4f}")

# fixed-context
UNITS, LENGTHS = 16, (1, 2, 4, 8, 16, 32)
torch.manual_seed(123)
gru = torch.nn.GRU(4, UNITS, dtype=torch.float32).double()
sentence = torch.empty(32, 4, dtype=torch.float32).uniform_(-1, 1).double()
query = gru(sentence[:1, None])[0][0, 0].detach()
query /= query.norm()


def fixed(words):
    return gru(words[:, None])[1][0, 0]


def alpha(states):
    return torch.softmax(50 * torch.nn.functional.normalize(states, dim=1) @ query, 0)


def attended(words):
    states = gru(words[:, None])[0][:, 0]
    return alpha(states) @ states


def influence(context, n):
    return torch.autograd.functional.jacobian(context, sentence[:n]).square().sum((0, 2)).sqrt()


for context in fixed, attended:
    show("fixed-context", "c", context(sentence)[:7])
for n in LENGTHS:
    first, last = influence(fixed, n)[[0, -1]]
    lines.append(f"fixed-context|{n} {first:.4f} {last:.4f} {first / last:.1e}")
changed = torch.cat([-sentence[:1], sentence[1:]])
show("fixed-context", "|c - c'|", [(fixed(sentence[:n]) - fixed(changed[:n])).norm() for n in LENGTHS])
for n in LENGTHS:
    lines.append(f"fixed-context|{n} {alpha(gru(sentence[:n, None])[0][:, 0])[0]:.4f} {influence(attended, n)[0]:.4f}")
for bias in 0, 2, 4:
    with torch.no_grad():
        gru.bias_ih_l0[UNITS:2 * UNITS] += bias
    show("fixed-context", f"b_z + {bias}", [torch.tensor(bias).double().sigmoid(), *influence(fixed, 32)[[0, -1]]])
    with torch.no_grad():
        gru.bias_ih_l0[UNITS:2 * UNITS] -= bias

# block: nn.TransformerEncoderLayer, six of them; the counts of torch's modules; the shipped translator in float64
def block_layer(width):
    module = torch.nn.TransformerEncoderLayer(width, 1, 4 * width, dropout=0, batch_first=True, dtype=torch.float32)
    return module.double().train()


def block_attention(layer, x):
    return layer.self_attn(x, x, x, need_weights=False)[0]


torch.manual_seed(789)
layers = [block_layer(3) for _ in range(6)]
first = layers[0]
a = block_attention(first, x)
y = first.norm1(x + a)
h = first.linear1(y).relu()
f = first.linear2(h)
z = first(x)
for rows in a, x + a, y, h[:, :8], h[:, 8:], f:
    table("block", words, rows)
for rows in f[1:2], block_attention(first, y)[1:2], block_attention(first, y[1:2]):
    show("block", "journey", rows[0])
table("block", words, z)


def spread(x):
    return ((x - x.mean(0)).norm() / x.norm()).item()


def put_spread(v):
    assert abs(v - 1e-4) > 1e-6
    return text(v) if v >= 1e-4 else "< 0.0001"


states = [x, x, x]
for i in range(7):
    lines.append(f"block|{i} " + " ".join(put_spread(spread(s)) for s in states))
    if i < 6:
        alone, residual, whole = states
        states = [block_attention(layers[i], alone), residual + block_attention(layers[i], residual), layers[i](whole)]
table("block", words, torch.softmax(z @ x.T, -1))


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def counts(n=6, d_model=512, d_ff=2048, h=8):
    encoder = count(torch.nn.TransformerEncoderLayer(d_model, h, d_ff, device="meta"))
    decoder = count(torch.nn.TransformerDecoderLayer(d_model, h, d_ff, device="meta"))
    return encoder, decoder, n * (encoder + decoder)


encoder, decoder, all_layers = counts()
attention = count(torch.nn.MultiheadAttention(512, 8, device="meta"))
lines.append(f"block|attention 4 d_model² + 4 d_model {attention:,} {4 * 512 * 512:,}")
lines.append(f"block|feed-forward 2 d_model d_ff + biases {encoder - attention - 4 * 512:,} {2 * 512 * 2048:,}")
lines.append(f"block|encoder layer 1 attention, 2 norms {encoder:,} {4 * 512 * 512 + 2 * 512 * 2048:,}")
lines.append(f"block|decoder layer 2 attentions, 3 norms {decoder:,} {8 * 512 * 512 + 2 * 512 * 2048:,}")
lines.append(f"block|6 + 6 layers {all_layers:,} {6 * (12 * 512 * 512 + 4 * 512 * 2048):,}")
lines.append(f"block|encoder {encoder:,}, decoder {decoder:,}")
short = 18 * 2 * (512 + 1) * 8 # of keys and queries, for each number by which d_k is less than 64
for name, layers_of, paper in (("base", all_layers, 65), ("N = 2", counts(2)[2], 36), ("N = 4", counts(4)[2], 50),
                               ("N = 8", counts(8)[2], 80), ("d_k = 16", all_layers - 48 * short, 58),
                               ("d_k = 32", all_layers - 32 * short, 60), ("d_ff = 1024", counts(d_ff=1024)[2], 53),
                               ("d_ff = 4096", counts(d_ff=4096)[2], 90)):
    lines.append(f"block|{name} {layers_of:,} {paper} {paper - layers_of / 1e6:.2f}")
encoder, decoder, all_layers = counts(3, 256, 1024, 4)
lines.append(f"block|encoder 3 layers of {encoder:,}")
lines.append(f"block|decoder 3 layers of {decoder:,}")
lines.append(f"block|together {all_layers + 6000 * 256 + 6000:,}")

path = pathlib.Path(__file__).parent / "explain" / "figures.txt"
path.parent.mkdir(exist_ok=True)
path.write_text("\n".join(lines) + "\n", encoding="utf-8")
print(len(lines), "lines in", path)
