"""Arrays of the standard library and of others, in place; attend.Array."""
import array
import gc
import weakref

import pytest

import attend


def floats(*shape):
    """A memoryview of float32 of this shape: 0.01, 0.02, ..."""
    n = 1
    for d in shape:
        n *= d
    return memoryview(array.array("f", (0.01 * (i + 1) for i in range(n)))).cast("B").cast("f", shape)


def test_attention_works_without_numpy():
    q = floats(1, 2, 3, 4)
    out = attend.scaled_dot_product_attention(q, q, q)
    assert type(out) is attend.Array and out.shape == (1, 2, 3, 4) and out.dtype == "float32" and out.ndim == 4
    view = memoryview(out)
    assert view.format == "f" and view.strides == out.strides == (96, 48, 16, 4)
    assert view.tolist() == out.tolist()


def test_rows_are_views_that_hold_the_array():
    out = attend.scaled_dot_product_attention(*[floats(1, 2, 3, 4)] * 3)
    row = out[0][1][2]
    expected = out.tolist()[0][1][2]
    del out
    gc.collect()
    assert row.tolist() == expected and len(row) == 4


@pytest.mark.parametrize("index", [-5, 1, 100])
def test_rows_out_of_range(index):
    with pytest.raises(IndexError):
        attend.scaled_dot_product_attention(*[floats(1, 2, 3, 4)] * 3)[index]


def test_an_array_cannot_be_made_by_calling_its_class():
    with pytest.raises(TypeError):
        attend.Array()


def test_out_is_written_in_place():
    q, out = floats(1, 2, 3, 4), floats(1, 2, 3, 4)
    assert attend.scaled_dot_product_attention(q, q, q, out=out) is out
    assert out.tolist() == attend.scaled_dot_product_attention(q, q, q).tolist()


@pytest.mark.parametrize("out, message", [
    (floats(1, 2, 3, 4).toreadonly(), "out: "),
    (floats(1, 2, 3, 5), "out.dim[3] = 5"),
    (floats(2, 3, 4), "out: has 3 dimensions"),
    (3, "out: an array"),
])
def test_out_that_does_not_fit(out, message):
    q = floats(1, 2, 3, 4)
    with pytest.raises(attend.Error) as error:
        attend.scaled_dot_product_attention(q, q, q, out=out)
    assert message in str(error.value)


def test_strides_are_read_in_place():
    numpy = pytest.importorskip("numpy")
    q = numpy.random.default_rng(0).standard_normal((2, 5, 3, 8)).astype("f")  # [batch, time, heads, dim]
    strided = attend.scaled_dot_product_attention(*[q.transpose(0, 2, 1, 3)] * 3)
    dense = attend.scaled_dot_product_attention(*[q.transpose(0, 2, 1, 3).copy()] * 3)
    assert type(strided) is numpy.ndarray and (strided == dense).all()
    backwards = attend.scaled_dot_product_attention(*[q.transpose(0, 2, 1, 3)[:, :, ::-1]] * 3)
    assert abs(backwards - dense[:, :, ::-1]).max() < 1e-6


def test_dlpack_both_ways():
    numpy = pytest.importorskip("numpy")
    q = floats(1, 2, 3, 4)
    out = attend.scaled_dot_product_attention(q, q, q)
    assert out.__dlpack_device__() == (1, 0)
    taken = numpy.from_dlpack(out)
    assert taken.tolist() == out.tolist()
    reference = weakref.ref(taken)
    expected = out.tolist()
    del out
    gc.collect()
    assert taken.tolist() == expected
    del taken
    gc.collect()
    assert reference() is None
    legacy = attend.scaled_dot_product_attention(q, q, q).__dlpack__()
    versioned = attend.scaled_dot_product_attention(q, q, q).__dlpack__(max_version=(1, 0))
    assert '"dltensor"' in repr(legacy) and '"dltensor_versioned"' in repr(versioned)


class OnlyDlpack:
    """A NumPy array that gives DLPack alone, of the versions before 1.0 if `old`"""

    def __init__(self, of, old=False, device=(1, 0)):
        self.of, self.old, self.device = of, old, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if self.old and options:
            raise TypeError("unexpected keyword")
        return self.of.__dlpack__(**options)


@pytest.mark.parametrize("old", [False, True])
def test_a_producer_of_dlpack_alone(old):
    numpy = pytest.importorskip("numpy")
    q = numpy.asarray(floats(1, 2, 3, 4))
    out = attend.scaled_dot_product_attention(OnlyDlpack(q, old), q, q)
    assert out.tolist() == attend.scaled_dot_product_attention(q, q, q).tolist()


def test_an_array_on_a_device_is_refused():
    numpy = pytest.importorskip("numpy")
    q = numpy.asarray(floats(1, 2, 3, 4))
    with pytest.raises(ValueError, match="query: is on a device"):
        attend.scaled_dot_product_attention(OnlyDlpack(q, device=(2, 0)), q, q)


@pytest.mark.parametrize("options", [{"stream": 1}, {"dl_device": (2, 0)}, {"copy": True}])
def test_what_dlpack_may_ask_for_and_is_not_offered(options):
    with pytest.raises(BufferError):
        attend.scaled_dot_product_attention(*[floats(1, 2, 3, 4)] * 3).__dlpack__(**options)


def test_arrow_takes_embeddings():
    pyarrow = pytest.importorskip("pyarrow")
    out = attend.similarity(floats(3, 4), floats(5, 4))
    taken = pyarrow.array(out)
    assert str(taken.type) == "fixed_size_list<item: float>[5]" and taken.to_pylist() == out.tolist()
