"""Attention against the formula in float64, and what is refused."""
import math
import os
import subprocess
import sys
import threading

import pytest

import attend
from test_arrays import floats

numpy = pytest.importorskip("numpy")
rng = numpy.random.default_rng(7)


def draw(*shape):
    return rng.standard_normal(shape).astype("f")


def formula(q, k, v, mask=None, bias=0.0, scale=None, softcap=None):
    """softmax(q k^T scale + bias) v in float64; mask: true = attend"""
    q, k, v = (x.astype("d") for x in (q, k, v))
    if q.shape[-3] != k.shape[-3]:
        k, v = (numpy.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    scores = scores if softcap is None else softcap * numpy.tanh(scores / softcap)
    scores = numpy.where(True if mask is None else mask, scores + bias, -numpy.inf)
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


Q, K, V = draw(2, 4, 5, 8), draw(2, 4, 7, 8), draw(2, 4, 7, 6)
SLOPES = numpy.array([0.5, 0.25, 0.125, 0.0625], "f")
DISTANCE = numpy.arange(7) - numpy.arange(5)[:, None]  # of a key from a query, aligned at the top left
MASK = rng.random((5, 7)) < 0.6
MASK[:, 0] = True
BIAS = draw(4, 5, 7)


@pytest.mark.parametrize("given, expected", [
    ({}, {}),
    ({"scale": 0.3}, {"scale": 0.3}),
    ({"attn_mask": MASK}, {"mask": MASK}),
    ({"attn_mask": BIAS}, {"bias": BIAS}),
    ({"is_causal": True, "align": "top_left"}, {"mask": DISTANCE <= 0}),
    ({"is_causal": True, "align": "bottom_right"}, {"mask": DISTANCE <= 2}),
    ({"window": 1, "align": "top_left"}, {"mask": abs(DISTANCE) <= 1}),
    ({"window": (2, 0), "align": "bottom_right"}, {"mask": (DISTANCE <= 2) & (DISTANCE >= 0)}),
    ({"softcap": 2.0}, {"softcap": 2.0}),
    ({"alibi": SLOPES, "align": "top_left"}, {"bias": -SLOPES[:, None, None] * abs(DISTANCE)}),
    ({"lengths": [7, 3]}, {"mask": numpy.arange(7) < numpy.array([7, 3])[:, None, None, None]}),
    ({"stages": [("softcap", 2.0), ("causal",)], "align": "top_left"}, {"softcap": 2.0, "mask": DISTANCE <= 0}),
    ({"stages": [("alibi", SLOPES), ("window", 2, -1)], "align": "top_left"},
     {"bias": -SLOPES[:, None, None] * abs(DISTANCE), "mask": DISTANCE >= -2}),
    ({"attn_mask": MASK, "is_causal": True, "align": "top_left"}, {"mask": MASK & (DISTANCE <= 0)}),
])
def test_the_formula(given, expected):
    out = attend.scaled_dot_product_attention(Q, K, V, **given)
    assert out.dtype == numpy.float32 and abs(out - formula(Q, K, V, **expected)).max() < 2e-6


def test_shared_heads_of_keys_are_asked_for():
    with pytest.raises(attend.ShapeError, match="enable_gqa"):
        attend.scaled_dot_product_attention(Q, K[:, :2], V[:, :2])
    out = attend.scaled_dot_product_attention(Q, K[:, :2], V[:, :2], enable_gqa=True)
    assert abs(out - formula(Q, K[:, :2], V[:, :2])).max() < 2e-6


def test_fewer_dimensions():
    whole = attend.scaled_dot_product_attention(Q, K, V)
    one = attend.scaled_dot_product_attention(Q[0, 1], K[0, 1], V[0, 1], return_lse=True)
    several = attend.scaled_dot_product_attention(Q[:, 1], K[:, 1], V[:, 1], attn_mask=numpy.ones((2, 5, 7), bool))
    assert one[0].shape == (5, 6) and one[1].shape == (5,) and (one[0] == whole[0, 1]).all()
    assert several.shape == (2, 5, 6) and abs(several - whole[:, 1]).max() < 1e-6


def test_other_scores():
    w = draw(8, 8)
    out = attend.scaled_dot_product_attention(Q, K, V, score="general", score_params=[w[None]])
    assert abs(out - formula(Q @ w, K, V, scale=1.0)).max() < 1e-5


def gradient(of, x, dout):
    """By central differences, in float64"""
    x = x.astype("d")
    out = numpy.zeros_like(x)
    for at in numpy.ndindex(x.shape):
        there = x[at]
        x[at] = there + 1e-5
        above = (of(x) * dout).sum()
        x[at] = there - 1e-5
        out[at] = (above - (of(x) * dout).sum()) / 2e-5
        x[at] = there
    return out


def test_backward_against_differences():
    q, k, v, dout = draw(1, 2, 3, 4), draw(1, 2, 4, 4), draw(1, 2, 4, 4), draw(1, 2, 3, 4)
    mask = numpy.arange(4) - numpy.arange(3)[:, None] <= 1
    options = {"is_causal": True, "align": "bottom_right"}
    out, lse = attend.scaled_dot_product_attention(q, k, v, **options, return_lse=True)
    dq, dk, dv = attend.attention_backward(dout, q, k, v, out, lse, **options)
    assert abs(dq - gradient(lambda x: formula(x, k, v, mask), q, dout)).max() < 1e-5
    assert abs(dk - gradient(lambda x: formula(q, x, v, mask), k, dout)).max() < 1e-5
    assert abs(dv - gradient(lambda x: formula(q, k, x, mask), v, dout)).max() < 1e-5


def test_dropout_depends_on_the_seed_alone():
    with pytest.raises(attend.ArgumentError, match="seed"):
        attend.scaled_dot_product_attention(Q, K, V, dropout_p=0.5)
    first, again, other = (attend.scaled_dot_product_attention(Q, K, V, dropout_p=0.5, seed=s) for s in (1, 1, 2))
    assert (first == again).all() and (first != other).any()


@pytest.mark.parametrize("error, options", [
    (TypeError, {"query": Q.astype("d")}),
    (TypeError, {"query": [[1.0]]}),
    (TypeError, {"query": Q.astype(">f4")}),
    (ValueError, {"key": K[:, :, :, :4]}),
    (ValueError, {"key": K[0]}),
    (ValueError, {"value": V[:, :, :3]}),
    (ValueError, {"is_causal": True}),
    (ValueError, {"align": "middle"}),
    (ValueError, {"attn_mask": MASK[:4]}),
    (ValueError, {"attn_mask": MASK[None, None, None]}),
    (ValueError, {"lengths": [1]}),
    (ValueError, {"lengths": [1, 8]}),
    (ValueError, {"lengths": [1, -1]}),
    (TypeError, {"lengths": [1, 1.5]}),
    (ValueError, {"scale": 0}),
    (TypeError, {"scale": "1"}),
    (TypeError, {"window": "1"}),
    (ValueError, {"score": "nothing"}),
    (ValueError, {"stages": [("nothing",)]}),
    (TypeError, {"stages": ["causal"]}),
    (ValueError, {"stages": [("softcap", 1, 2, 3)]}),
    (ValueError, {"stages": [("causal",)] * 17, "align": "top_left"}),
    (ValueError, {"dropout_p": 1.0, "seed": 1}),
    (TypeError, {"nothing": 1}),
])
def test_what_is_refused(error, options):
    with pytest.raises(error):
        attend.scaled_dot_product_attention(**{"query": Q, "key": K, "value": V, **options})


def test_errors_have_a_status_and_the_library_s_sentence():
    with pytest.raises(attend.Error) as found:
        attend.scaled_dot_product_attention(Q, K[:, :, :, :4], V)
    assert found.value.status == "ERR_SHAPE" and "head_dim = 8" in str(found.value)


def test_empty_and_nan():
    assert attend.scaled_dot_product_attention(Q[:, :, :0], K, V).shape == (2, 4, 0, 6)
    assert (attend.scaled_dot_product_attention(Q, K[:, :, :0], V[:, :, :0]) == 0).all()
    assert numpy.isnan(attend.scaled_dot_product_attention(Q * numpy.nan, K, V)).all()


def test_threads_compute_at_the_same_time():
    expected = attend.scaled_dot_product_attention(Q, K, V)
    wrong = []

    def compute():
        for window in range(40):  # more plans than are kept
            attend.scaled_dot_product_attention(Q, K, V, window=window, align="top_left")
            if (attend.scaled_dot_product_attention(Q, K, V) != expected).any():
                wrong.append(window)

    threads = [threading.Thread(target=compute) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def run(code, **environment):
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True,
                          check=False)


def test_threads_of_the_environment():
    assert run("import attend; print(attend.config()['threads'])", ATTEND_THREADS="1").stdout == "1\n"
    assert run("import attend; print(attend.config()['threads'])", ATTEND_THREADS="0").stdout == \
        run("import attend; print(attend.config()['threads'])", ATTEND_THREADS="").stdout
    for number in ("many", "-1", "1x"):
        assert f"ATTEND_THREADS='{number}' is not a number" in run("import attend", ATTEND_THREADS=number).stderr
    assert run("import attend", ATTEND_THREADS="many", PYTHONWARNINGS="error").returncode == 1


def test_a_forked_child_computes():
    done = run("""
import array, os, attend
q = memoryview(array.array("f", [0.1] * 64)).cast("B").cast("f", (1, 1, 8, 8))
expected = attend.scaled_dot_product_attention(q, q, q).tolist()
child = os.fork()
if child == 0:
    os._exit(0 if attend.scaled_dot_product_attention(q, q, q).tolist() == expected else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    assert done.stdout == "0\n", done.stderr


def test_objects_die_in_any_order_at_exit():
    done = run("""
import array, attend, sys
q = memoryview(array.array("f", [0.1] * 64)).cast("B").cast("f", (1, 1, 8, 8))
kept = attend.scaled_dot_product_attention(q, q, q)
capsule = kept.__dlpack__()
sys.modules["kept"] = kept
cycle = [kept]
cycle.append(cycle)
""")
    assert done.returncode == 0 and not done.stderr
