"""DLPack and buffers at their edges: capsules made by hand, layouts, and what is refused."""
import array
import ctypes

import pytest

import attend
from test_arrays import floats

CPU, CUDA = 1, 2
FLOAT = 2


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("manager", ctypes.c_void_p), ("deleter", DELETER), ("flags", ctypes.c_uint64),
                ("tensor", Tensor)]


capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype, capsule_new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """Gives a capsule of `values`, and counts how often it is given back"""

    def __init__(self, values, shape, strides=None, *, version=(1, 0), flags=0, device=(CPU, 0), inside=None, code=FLOAT,
                 bits=32, lanes=1, byte_offset=0, says=None):
        self.values, self.deleted, self.says = array.array("f", values), 0, says
        kind = Versioned if version else Legacy
        managed = self.managed = kind()
        t = managed.tensor
        t.data, t.rank, t.code, t.bits, t.lanes = self.values.buffer_info()[0], len(shape), code, bits, lanes
        t.device[:] = inside or device
        t.shape = (ctypes.c_int64 * len(shape))(*shape)
        t.strides = (ctypes.c_int64 * len(shape))(*strides) if strides is not None else None
        t.byte_offset = byte_offset
        managed.deleter = DELETER(self.delete)
        if version:
            managed.version[:], managed.flags = version, flags
        self.name = b"dltensor_versioned" if version else b"dltensor"
        self.device = device

    def delete(self, _):
        self.deleted += 1

    def __dlpack__(self, **options):
        return capsule_new(ctypes.addressof(self.managed), self.name, None)

    def __dlpack_device__(self):
        return self.says or self.device


VALUES = [0.1 * i for i in range(24)]
EXPECTED = attend.scaled_dot_product_attention(*[memoryview(array.array("f", VALUES)).cast("B").cast("f", (1, 2, 3, 4))] * 3).tolist()


@pytest.mark.parametrize("version", [None, (1, 0), (1, 9)])
@pytest.mark.parametrize("strides", [None, (24, 12, 4, 1)])
def test_a_capsule_is_read_and_given_back_once(version, strides):
    producers = [Producer(VALUES, (1, 2, 3, 4), strides, version=version) for _ in range(3)]
    assert attend.scaled_dot_product_attention(*producers).tolist() == EXPECTED
    assert [p.deleted for p in producers] == [1, 1, 1]


def test_a_byte_offset():
    q = Producer([9.0] * 2 + VALUES, (1, 2, 3, 4), byte_offset=8)
    assert attend.scaled_dot_product_attention(q, q.__class__(VALUES, (1, 2, 3, 4)), Producer(VALUES, (1, 2, 3, 4))).tolist() == EXPECTED


@pytest.mark.parametrize("error, options", [
    (ValueError, {"version": (2, 0)}), (ValueError, {"device": (CUDA, 0)}), (ValueError, {"inside": (CUDA, 0)}),
    (ValueError, {"device": (8, 0)}),
    (TypeError, {"bits": 64}), (TypeError, {"lanes": 4}), (TypeError, {"code": 5, "bits": 64}), (TypeError, {"code": 1}),
    (TypeError, {"code": 10, "bits": 8}), (ValueError, {"shape": (1,) * 7}), (ValueError, {"shape": (1, 2, 3, -4)}),
    (TypeError, {"says": 5}),
])
def test_a_capsule_that_is_refused_is_given_back(error, options):
    p = Producer(VALUES, **{"shape": (1, 2, 3, 4), **options})
    q = floats(1, 2, 3, 4)
    with pytest.raises(error) as found:
        attend.scaled_dot_product_attention(q, p, q)
    taken = p.device[0] == CPU and not p.says
    assert p.deleted == taken and (not taken or "key: " in str(found.value))


def test_a_capsule_of_another_name():
    class Other:
        def __dlpack__(self, **options):
            return capsule_new(1, b"nothing", None)

        def __dlpack_device__(self):
            return (CPU, 0)

    with pytest.raises(ValueError):
        attend.scaled_dot_product_attention(Other(), floats(2, 3), floats(2, 3))


def test_arrays_without_numbers():
    empty = attend.scaled_dot_product_attention(floats(2, 3)[:0], floats(2, 3), floats(2, 3))
    assert empty.shape == (0, 3) and memoryview(empty).nbytes == 0
    none = Producer([1.0], (0, 3))
    none.managed.tensor.data = None
    assert attend.scaled_dot_product_attention(none, floats(2, 3), floats(2, 3)).shape == (0, 3)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = empty.__dlpack__(max_version=(1, 0))
    tensor = Versioned.from_address(get(capsule, b"dltensor_versioned")).tensor
    assert tensor.data is None and tensor.shape[:2] == [0, 3] and tensor.strides[:2] == [3, 1]


def test_out_by_dlpack():
    q, out = floats(1, 2, 3, 4), Producer([0.0] * 24, (1, 2, 3, 4))
    assert attend.scaled_dot_product_attention(q, q, q, out=out) is out and out.deleted == 1 and any(out.values)
    read_only = Producer(VALUES, (1, 2, 3, 4), flags=1)
    assert attend.scaled_dot_product_attention(read_only, q, q).shape == (1, 2, 3, 4)
    read_only = Producer(VALUES, (1, 2, 3, 4), flags=1)
    with pytest.raises(ValueError, match="out: is read-only"):
        attend.scaled_dot_product_attention(q, q, q, out=read_only)
    assert read_only.deleted == 1


def test_what_a_producer_raises_is_kept():
    class Fails:
        def __dlpack__(self, **options):
            raise BufferError("requires a gradient")

        def __dlpack_device__(self):
            return (CPU, 0)

    with pytest.raises(BufferError, match="requires a gradient"):
        attend.scaled_dot_product_attention(Fails(), floats(2, 3), floats(2, 3))


# ---- layouts, with NumPy


@pytest.fixture(scope="module")
def numpy():
    return pytest.importorskip("numpy")


LAYOUTS = {
    "last dimension backwards": lambda x: x[..., ::-1], "every second number": lambda x: x.repeat(2, -1)[..., ::2],
    "columns first": lambda x: x.copy().swapaxes(-1, -2).copy().swapaxes(-1, -2), "broadcast": lambda x: x[:1].repeat(2, 0) * 0 + x[:, :1],
    "backwards in time": lambda x: x[:, :, ::-1], "read-only": lambda x: (x.setflags(write=False), x)[1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_of_any_layout(numpy, layout):
    x = numpy.random.default_rng(3).standard_normal((2, 3, 4, 5)).astype("f")
    other = LAYOUTS[layout](x)
    dense = numpy.ascontiguousarray(other)
    for position in range(3):
        operands = [x, x, x]
        operands[position] = other
        found = attend.scaled_dot_product_attention(*operands)
        operands[position] = dense
        assert abs(found - attend.scaled_dot_product_attention(*operands)).max() < 1e-6


def test_out_of_another_layout_is_an_error_and_no_copy(numpy):
    x = numpy.ones((2, 3, 4, 5), "f")
    with pytest.raises(ValueError, match="out"):
        attend.scaled_dot_product_attention(x, x, x, out=numpy.empty((2, 3, 4, 10), "f")[..., ::2])
    out = numpy.zeros((2, 4, 3, 5), "f").transpose(0, 2, 1, 3)  # this one fits
    assert attend.scaled_dot_product_attention(x, x, x, out=out) is out and (out == 1).all()


def test_an_out_that_overlaps_an_operand(numpy):
    x = numpy.ones((1, 1, 4, 5), "f")
    for out in (x, x[:, :, ::-1], numpy.broadcast_to(x, x.shape)):
        with pytest.raises(ValueError, match="out"):
            attend.scaled_dot_product_attention(x, x, x, out=out)


def test_types_that_are_refused(numpy):
    x = numpy.ones((4, 5), "f")
    for other in (x.astype("d"), x.astype(">f4"), x.astype("i4"), x.astype("c8"), x.astype("O"), x.astype("U1"), x > 0,
                  numpy.zeros((4, 5), "f4,f4"), numpy.zeros((4, 5), "V4")):
        with pytest.raises(TypeError):
            attend.scaled_dot_product_attention(x, other, x)
    with pytest.raises(TypeError):
        attend.scaled_dot_product_attention(x, x.astype("e"), x)


def test_embeddings_of_any_layout(numpy):
    x = numpy.random.default_rng(4).standard_normal((6, 10)).astype("f")
    part, dense = x[::2, 1:9:2], x[::2, 1:9:2].copy()
    assert (attend.similarity(part, part) == attend.similarity(dense, dense)).all()
    assert attend.semantic_search(part, part) == attend.semantic_search(dense, dense)
    assert (attend.quantize_embeddings(part, "int8") == attend.quantize_embeddings(dense, "int8")).all()
    assert (attend.quantize_embeddings(part, "uint8", numpy.array([x.min(0), x.max(0)])[:, 1:9:2])
            == attend.quantize_embeddings(dense, "uint8", numpy.array([x.min(0), x.max(0)])[:, 1:9:2].copy())).all()


def test_torch(numpy):
    torch = pytest.importorskip("torch")
    x = torch.randn(1, 2, 3, 4)
    reference = torch.nn.functional.scaled_dot_product_attention(x, x, x)
    found = attend.scaled_dot_product_attention(x, x, x)
    assert type(found) is torch.Tensor and (found - reference).abs().max() < 1e-6
    half = x.bfloat16()
    found = attend.scaled_dot_product_attention(half, half, half)
    assert found.dtype == torch.bfloat16 and (found.float() - reference).abs().max() < 0.03
    with pytest.raises(BufferError):
        attend.scaled_dot_product_attention(x.requires_grad_(), x, x)
    with pytest.raises((ValueError, RuntimeError, BufferError)):
        attend.scaled_dot_product_attention(torch.empty(1, 2, 3, 4, device="meta"), half, half)
