"""Scores, modifiers and masks of one's own: compiled by cc, cffi and numba, or Python functions by ctypes."""
import array
import ctypes
import gc
import pathlib
import pickle
import re
import subprocess
import sys
import weakref

import pytest

import attend
from attend import stages
from test_arrays import floats

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/python"
SOURCE = r"""
#include <attend_extend.h>
double dot(const att_pair *p)
{
    double s = 0;
    for (int64_t d = 0; d < p->dim; d++)
        s += (double)p->query[d] * p->key[d];
    return s;
}
void dot_back(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    for (int64_t d = 0; d < p->dim; d++)
        dq[d] += ds * p->key[d], dk[d] += ds * p->query[d];
}
void dot_wrong(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam) { dq[0] += ds; }
double plus(const att_pair *p, double s)
{
    return s + p->value[0] + p->param[0].data[p->param[0].count == 1 ? 0 : p->q] + ((const double *)p->user)[1];
}
_Bool at_most(const att_mask_block *b) { return b->k <= b->q + (int64_t)b->value[0]; }
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.c").write_text(SOURCE)
    try:
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", attend.get_include(), "-o", folder / "own.so", folder / "own.c"],
                       check=True)
    except FileNotFoundError:
        pytest.skip("cc is not there")
    return ctypes.CDLL(str(folder / "own.so"))


Q, K = floats(1, 2, 3, 4), floats(1, 2, 5, 4)


def attention(**options):
    return attend.scaled_dot_product_attention(Q, K, K, **options).tolist()


def close(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return abs(a - b) < 1e-6


def test_a_score_is_as_the_library_s(compiled):
    own = attend.Score(compiled.dot, derivative=compiled.dot_back, name="own")
    attend.verify_attention(Q, K, K, score=own)
    assert close(attention(score=own), attention(scale=1.0))
    with pytest.raises(attend.ArgumentError, match="own"):
        attend.verify_attention(Q, K, K, score=attend.Score(compiled.dot, derivative=compiled.dot_wrong, name="own"))
    out, lse = attend.scaled_dot_product_attention(Q, K, K, score=own, return_lse=True)
    theirs, theirs_lse = attend.scaled_dot_product_attention(Q, K, K, scale=1.0, return_lse=True)
    for mine, other in zip(attend.attention_backward(Q, Q, K, K, out, lse, score=own),
                           attend.attention_backward(Q, Q, K, K, theirs, theirs_lse, scale=1.0)):
        assert close(mine.tolist(), other.tolist())
    with pytest.raises(attend.Error):  # it has no derivative
        attend.attention_backward(Q, Q, K, K, out, lse, score=attend.Score(compiled.dot))


def test_modifiers_and_masks_with_values_parameters_and_data(compiled):
    plus = attend.Modifier(compiled.plus, params=["w"], user=array.array("d", [7, 0.5]), has_value=True)
    at_most = attend.Mask(compiled.at_most, needs_align=True, has_value=True)
    w = floats(1)
    found = attention(stages=[(plus, 2.0, w), (at_most, 1)], align="top_left")
    assert close(found, attention(stages=[("window", -1, 1)], align="top_left"))  # adding a number changes no weight
    with pytest.raises(attend.ArgumentError, match="align"):
        attention(stages=[(at_most, 1)])
    with pytest.raises(attend.Error):  # the parameter is missing
        attention(stages=[(plus, 2.0)])


def test_what_a_plan_runs_stays(compiled):
    data = array.array("d", [0, 0.5])
    own = attend.Modifier(compiled.plus, params=["w"], user=data, has_value=True)
    with pytest.raises(BufferError):
        data.append(1)  # it is held
    attention(stages=[(own, 2.0, floats(1))])
    stays = weakref.ref(own)
    del own
    gc.collect()
    assert stays() is not None  # by the plan
    for window in range(40):
        attention(window=window, align="top_left")
    gc.collect()
    assert stays() is None
    data.append(1)


def test_a_python_function_by_ctypes():
    calls = []

    @ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(ctypes.c_int64))
    def keep(block):
        calls.append(1)
        return block[7] <= block[5]  # k <= q

    found = attention(stages=[(attend.Mask(keep, needs_align=True),)], align="top_left")
    assert calls and close(found, attention(is_causal=True, align="top_left"))


def test_cffi(compiled):
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    ffi.cdef("double dot(const void *p);")
    library = ffi.dlopen(compiled._name)
    assert close(attention(score=attend.Score(ffi.addressof(library, "dot"))), attention(scale=1.0))
    assert close(attention(score=attend.Score(library.dot)), attention(scale=1.0))


def test_addresses(compiled):
    address = ctypes.cast(compiled.dot, ctypes.c_void_p).value
    assert close(attention(score=attend.Score(address)), attention(scale=1.0))


@pytest.mark.parametrize("error, call", [
    (TypeError, lambda c: attend.Score(lambda pair: 0)), (ValueError, lambda c: attend.Score(None)),
    (TypeError, lambda c: attend.Score("dot")), (ValueError, lambda c: attend.Score(c.dot, params=[("w", "per_nothing")])),
    (ValueError, lambda c: attend.Modifier(c.plus, params=["w"] * 9)), (TypeError, lambda c: attend.Score(c.dot, user=1.5)),
    (ValueError, lambda c: attend.Score(c.dot, params=[attend.Param("w", dtype="float64")])),
    (TypeError, lambda c: attend.Score(c.dot, nothing=True)), (TypeError, lambda c: attention(score=attend.Mask(c.at_most))),
    (TypeError, lambda c: attention(stages=[(attend.Score(c.dot),)])), (TypeError, lambda c: attention(score=5)),
    (TypeError, lambda c: attention(stages=[attend.Mask(c.at_most)])), (TypeError, lambda c: attention(stages=[(5,)])),
    (TypeError, lambda c: attention(stages=[()])), (TypeError, lambda c: pickle.dumps(attend.Score(c.dot))),
])
def test_what_is_refused(compiled, error, call):
    with pytest.raises(error):
        call(compiled)


def test_flags_are_those_of_the_header():
    header = (pathlib.Path(attend.get_include()) / "attend_extend.h").read_text("utf-8")
    theirs = {name.lower(): int(value) for name, value in re.findall(r"ATT_STAGE_(\w+) = (\d+)", header)}
    assert stages._FLAGS == theirs
    kinds = re.findall(r"^    ATT_PARAM_(\w+)(?: = 0)?,? ", header, re.M)
    extents = re.findall(r"^    ATT_EXTENT_(\w+)", header, re.M)
    assert {k.lower(): i for i, k in enumerate(kinds)} == stages._KINDS
    assert {None if e == "NONE" else e.lower(): i for i, e in enumerate(extents)} == stages._EXTENTS


def run(name):
    return subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, check=True).stdout


def test_the_example_in_c(compiled):
    assert run("own_score.py") == "0.0010 0.2699\n0.0196 0.7471\ngradient of the first query: 0.0002 0.0532\n"


def test_the_example_with_numba():
    pytest.importorskip("numba")
    assert run("own_mask_numba.py") == "0.0 1.0 1.0 2.0 2.0 3.0\n"
