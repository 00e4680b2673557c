"""attend.torch, compared with torch: ./dev python --torch runs it, as the system's Python has no torch."""
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: ./dev python --torch installs it")

import attend
import attend.torch
from attend.torch import attention, scaled_dot_product_attention
from torch.nn.functional import scaled_dot_product_attention as of_torch

# Sums are rounded in another order: of 40 numbers of size 1 in float32 to 1e-6, in types of 8 and 11 bits to a unit or
# two in the last place of numbers up to 2.
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 1.6e-2, torch.float16: 2e-3}


def randoms(*shapes, dtype=torch.float32, grad=False):
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(shape, generator=generator).to(dtype).requires_grad_(grad) for shape in shapes]


def compare(shapes, mask=None, dtype=torch.float32, prepare=lambda x: x, **options):
    """Results and gradients of both, from the same operands"""
    results = []
    for function in (scaled_dot_product_attention, of_torch):
        leaves = randoms(*shapes, dtype=dtype, grad=True)
        bias = mask.clone().requires_grad_() if mask is not None and mask.is_floating_point() else mask
        out = function(*map(prepare, leaves), attn_mask=bias, **options)
        weights = torch.linspace(-1, 1, out.numel(), dtype=dtype).view(out.shape)
        (out * weights).sum().backward()
        gradients = [x.grad for x in leaves] + ([bias.grad] if bias is not mask else [])
        results.append([out.detach(), *gradients])
    for ours, theirs in zip(*results):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        scale = max(1.0, theirs.abs().max().item())
        assert (ours - theirs).abs().max().item() <= TOLERANCE[dtype] * scale


SELF = [(2, 4, 37, 16)] * 3
MASK = torch.arange(37 * 37).view(37, 37) % 5 > 0


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("is_causal", [False, True])
def test_results_and_gradients_are_those_of_torch(dtype, is_causal):
    compare(SELF, dtype=dtype, is_causal=is_causal)


@pytest.mark.parametrize("shapes, options", [
    ([(2, 4, 7, 16), (2, 4, 12, 16), (2, 4, 12, 8)], {"is_causal": True}),  # top left
    ([(2, 4, 12, 16), (2, 4, 7, 16), (2, 4, 7, 8)], {"is_causal": True}),
    ([(2, 6, 9, 16), (2, 2, 9, 16), (2, 2, 9, 16)], {"enable_gqa": True}),
    ([(2, 6, 9, 16), (2, 3, 9, 16), (2, 2, 9, 16)], {"enable_gqa": True}),  # other groups of values
    ([(6, 9, 16), (2, 9, 16), (2, 9, 16)], {"enable_gqa": True, "scale": -0.3}),
    ([(9, 16), (5, 16), (5, 16)], {}),
    ([(3, 9, 16)] * 3, {"is_causal": True}),
    ([(2, 3, 4, 9, 16)] * 3, {}),
    ([(3, 4, 9, 16), (1, 1, 9, 16), (4, 9, 16)], {}),  # broadcast
    (SELF, {"scale": 0.0}),
])
def test_shapes_are_those_of_torch(shapes, options):
    compare(shapes, **options)


@pytest.mark.parametrize("mask", [
    MASK, MASK[:1], MASK.float().log(), MASK[None, None].expand(2, 1, 37, 37), torch.randn(37, 37),
    torch.randn(4, 37, 37), torch.randn(2, 1, 1, 37), torch.randn(1, 4, 37, 1),
    torch.where(MASK, 0.0, torch.finfo(torch.float32).min),
], ids=lambda mask: f"{mask.dtype}-{list(mask.shape)}")
def test_masks_are_those_of_torch(mask):
    compare(SELF, mask=mask)


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x.float().log()], ids=["bool", "float"])
def test_a_row_without_keys_is_0_as_in_torch(make):
    mask = MASK.clone()
    mask[3] = False
    compare(SELF, mask=make(mask))
    assert not scaled_dot_product_attention(*randoms(*SELF), attn_mask=make(mask))[:, :, 3].any()


@pytest.mark.parametrize("number", [-1e4, -1e9, -1e30, torch.finfo(torch.float32).min])
def test_a_number_added_to_whole_rows_loses_what_it_loses_in_torch(number):
    """Queries and keys are multiples of 1/4, so scores beside -1e4 are exact; beside the other numbers all are equal."""
    mask = torch.zeros(37, 37)
    mask[::2] = number
    compare(SELF, mask=mask, prepare=lambda x: x - x.detach() + (4 * x.detach()).round() / 4)


def test_masks_of_more_dimensions():
    compare([(2, 3, 4, 9, 16)] * 3, mask=torch.randn(2, 1, 4, 9, 9))
    compare([(2, 3, 4, 9, 16)] * 3, mask=torch.randn(3, 4, 9, 9))
    compare([(4, 9, 16)] * 3, mask=torch.randn(4, 9, 9))


def test_bfloat16_with_masks():
    compare(SELF, mask=MASK, dtype=torch.bfloat16)
    compare(SELF, mask=torch.randn(4, 37, 37).bfloat16(), dtype=torch.bfloat16)


@pytest.mark.parametrize("prepare", [
    lambda x: x.transpose(1, 2).contiguous().transpose(1, 2), lambda x: x.mT.contiguous().mT, lambda x: x[:, ::2],
    lambda x: x[..., ::2], lambda x: x[:1].expand(3, -1, -1, -1)], ids=["BLHD", "columns", "heads", "dims", "expanded"])
def test_any_strides(prepare):
    compare(SELF, prepare=prepare)


@pytest.mark.parametrize("shapes", [
    [(2, 4, 0, 16), (2, 4, 5, 16), (2, 4, 5, 16)], [(2, 4, 5, 16), (2, 4, 0, 16), (2, 4, 0, 16)], [(0, 4, 5, 16)] * 3,
    [(2, 4, 5, 0), (2, 4, 5, 0), (2, 4, 5, 8)]], ids=["queries", "keys", "batch", "dims"])
def test_nothing_in_it(shapes):
    ours, theirs = (f(*randoms(*shapes)) for f in (scaled_dot_product_attention, of_torch))
    assert ours.shape == theirs.shape and torch.allclose(ours, theirs)


@pytest.mark.parametrize("change, options, said", [
    (lambda q: (q, q, q), {"attn_mask": MASK, "is_causal": True}, "is_causal is True"),
    (lambda q: (q, q, q), {"attn_mask": MASK.int()}, "torch.int32"),
    (lambda q: (q, q, q), {"attn_mask": MASK[:, :5]}, r"\[1, 1, 37, 5\] does not broadcast to \[2, 4, 37, 37\]"),
    (lambda q: (q, q, q), {"dropout_p": 1.5}, "1.5"),
    (lambda q: (q, q.bfloat16(), q), {}, "one type"),
    (lambda q: (q.double(), q.double(), q.double()), {}, "float64"),
    (lambda q: (q, q[..., :8], q), {}, "do not fit together"),
    (lambda q: (q, q, q[:, :, :9]), {}, "do not fit together"),
    (lambda q: (q[0, 0, 0], q, q), {}, "at least 2"),
    (lambda q: (q[:, :3], q[:, :2], q[:, :2]), {"enable_gqa": True}, "3 heads, key 2"),
    (lambda q: (q, q[:, :2], q[:, :2]), {}, "broadcast"),
])
def test_what_does_not_fit_is_an_error(change, options, said):
    with pytest.raises(RuntimeError, match=said):
        scaled_dot_product_attention(*change(randoms(*SELF)[0]), **options)


def test_other_devices_are_an_error():
    class Elsewhere:
        type = "cuda"
        def __str__(self):
            return "cuda:0"

    class Tensor:
        is_nested, is_cpu, device = False, False, Elsewhere()

    with pytest.raises(RuntimeError, match="query is on cuda:0, but attend computes on the CPU"):
        scaled_dot_product_attention(Tensor(), None, None)


def test_no_second_derivative():
    q, k, v = randoms(*SELF, grad=True)
    [first] = torch.autograd.grad(scaled_dot_product_attention(q, k, v).sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        first.sum().backward()


# ---- dropout

def test_dropout_keeps_the_mean_and_follows_the_generator():
    q, k, v = randoms(*SELF)
    v = torch.ones_like(v)
    torch.manual_seed(3)
    first = scaled_dot_product_attention(q, k, v, dropout_p=0.3)
    second = scaled_dot_product_attention(q, k, v, dropout_p=0.3)
    torch.manual_seed(3)
    again = scaled_dot_product_attention(q, k, v, dropout_p=0.3)
    assert torch.equal(first, again) and not torch.equal(first, second)
    assert abs(first.mean().item() - 1) < 0.05  # 11,000 weights, each row of 37
    assert not scaled_dot_product_attention(q, k, v, dropout_p=1.0).any()


def test_the_backward_drops_what_the_forward_dropped():
    q, k, v = randoms(*SELF, grad=True)
    v = torch.ones_like(v).requires_grad_()
    out = scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    out.sum().backward()
    # out is linear in v: the sum of v's gradient is that of out
    assert torch.allclose(v.grad.sum(), out.sum(), rtol=1e-4)
    assert torch.allclose(v.grad.sum((2,)), out.sum((2,)), rtol=1e-3)


# ---- the operator

def operands(**changed):
    q, k, v = randoms((2, 4, 9, 16), (2, 2, 9, 16), (2, 2, 9, 16), grad=True)
    values = {"bias": None, "mask": None, "lengths": None, "seed": None, "causal": False, "start": 0, "before": -1,
              "after": -1, "softcap": 0.0, "scale": 0.0, "dropout": 0.0, **changed}
    return (q, k, v, *values.values())


@pytest.mark.parametrize("changed", [
    {}, {"causal": True, "lengths": torch.tensor([9, 4])}, {"seed": torch.tensor([7]), "dropout": 0.2},
    {"bias": torch.randn(1, 4, 9, 9, requires_grad=True), "softcap": 5.0},
    {"mask": torch.ones(2, 1, 1, 9, dtype=torch.bool), "before": 3, "after": 2, "scale": 0.5}],
    ids=["plain", "causal", "dropout", "bias", "window"])
def test_opcheck(changed):
    torch.library.opcheck(attention, operands(**changed))


@pytest.mark.parametrize("changed", [
    {"lengths": torch.tensor([9, 4])}, {"before": 3, "after": 2}, {"causal": True, "start": 0, "before": 2},
    {"lengths": torch.tensor([5, 0])}, {"start": 3, "causal": True}], ids=str)
def test_lengths_windows_and_positions_are_masks(changed):
    args = operands(**changed)
    i, j = torch.arange(9)[:, None] + changed.get("start", 0), torch.arange(9)
    keep = torch.ones(2, 1, 9, 9, dtype=torch.bool)
    if "lengths" in changed:
        keep &= j < changed["lengths"].view(2, 1, 1, 1)
    if "causal" in changed:
        keep &= j <= i
    keep &= (j >= i - changed["before"]) if changed.get("before", -1) >= 0 else True
    keep &= (j <= i + changed["after"]) if changed.get("after", -1) >= 0 else True
    expected = of_torch(*args[:3], attn_mask=keep, enable_gqa=True)
    assert torch.allclose(attention(*args)[0], expected, atol=2e-6)


def test_softcap():
    args = operands(softcap=2.0)
    q, k, v = (x.detach() for x in args[:3])
    scores = 2 * torch.tanh(q @ k.repeat_interleave(2, 1).mT / 4 / 2)
    assert torch.allclose(attention(*args)[0], scores.softmax(-1) @ v.repeat_interleave(2, 1), atol=2e-6)


def backends():
    import shutil
    return ["eager", "aot_eager"] + (["inductor"] if shutil.which("g++") else [])


@pytest.mark.parametrize("backend", backends())
def test_compiled_functions_give_the_same(backend):
    def step(q, k, v):
        return scaled_dot_product_attention(q * 2, k, v, is_causal=True).sin().sum()

    compiled = torch.compile(step, backend=backend, fullgraph=True)
    results = []
    for function in (step, compiled):
        leaves = randoms(*SELF, grad=True)
        function(*leaves).backward()
        results.append([x.grad for x in leaves])
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*results))


def test_compiled_functions_drop_other_weights_each_time():
    dropped = torch.compile(lambda q: scaled_dot_product_attention(q, q, q, dropout_p=0.5), backend="aot_eager", fullgraph=True)
    q = randoms(*SELF)[0]
    assert not torch.equal(dropped(q), dropped(q))


def test_autocast_casts_as_in_torch():
    q, k, v = randoms(*SELF)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours, theirs = scaled_dot_product_attention(q, k, v), of_torch(q, k, v)
    assert ours.dtype == theirs.dtype == torch.bfloat16 and (ours - theirs).abs().max() <= 1.6e-2


def test_inference_mode_and_no_grad_give_the_same_bits():
    q, k, v = randoms(*SELF)
    expected = scaled_dot_product_attention(*(x.clone().requires_grad_() for x in (q, k, v))).detach()
    with torch.inference_mode():
        assert torch.equal(scaled_dot_product_attention(q, k, v), expected)
    with torch.no_grad():
        assert torch.equal(scaled_dot_product_attention(q, k, v), expected)


# ---- threads

def test_it_computes_on_the_threads_of_torch():
    """A process that has computed in both has no more threads than one that has computed in torch alone."""
    program = """if True:
        import os, sys, torch
        import attend.torch
        x = torch.randn(2, 8, 256, 64, requires_grad=True)
        (torch.randn(999, 999) @ torch.randn(999, 999)).sin().sum()
        torch.nn.functional.scaled_dot_product_attention(x, x, x).sum().backward()
        before = len(os.listdir('/proc/self/task'))
        attend.torch.scaled_dot_product_attention(x, x, x).sum().backward()
        print(before, len(os.listdir('/proc/self/task')))"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    before, after = map(int, said.split())
    assert before == after


def test_any_number_of_threads_gives_the_same_bits():
    leaves = randoms((1, 8, 256, 64), (1, 8, 256, 64), (1, 8, 256, 64), grad=True)
    threads, results = torch.get_num_threads(), []
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            out = scaled_dot_product_attention(*leaves, is_causal=True)
            results.append([out, *torch.autograd.grad(out.sum(), leaves)])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other))


def test_a_module_that_is_opened_is_not_opened_again():
    with pytest.raises(attend.Error, match="is open"):
        attend._attend.torch_open(0, 1)
