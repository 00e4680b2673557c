"""The buffer protocol, DLPack and Arrow from the consumer's side, as a program in C uses them."""
import array
import ctypes

import pytest

import attend
from test_arrays import floats
from test_models import NAME

SIMPLE, WRITABLE, FORMAT, ND, STRIDES = 0, 1, 4, 8, 0x18
C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS = 0x20 | STRIDES, 0x40 | STRIDES, 0x80 | STRIDES


class Buffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
                ("strides", ctypes.POINTER(ctypes.c_ssize_t)), ("suboffsets", ctypes.c_void_p),
                ("internal", ctypes.c_void_p)]


def get(source, flags):
    """(format, shape, strides) of a buffer, None where the exporter leaves it out"""
    buffer = Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(source), ctypes.byref(buffer), flags)
    found = (buffer.format, *(tuple(p[:buffer.ndim]) if p else None for p in (buffer.shape, buffer.strides)))
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return found


@pytest.fixture(name="made")
def fixture_made():
    x = floats(3, 2)
    return attend.similarity(x, x)  # [3, 3]


def test_a_buffer_has_what_was_asked_for(made):
    assert get(made, SIMPLE) == (None, None, None)
    assert get(made, ND | FORMAT) == (b"f", (3, 3), None)
    assert get(made, STRIDES | WRITABLE) == (None, (3, 3), (12, 4))
    for flags in (C_CONTIGUOUS, ANY_CONTIGUOUS):
        assert get(made, flags)[2] == (12, 4)
    column = made.column(1)
    assert get(column, STRIDES) == (None, (3,), (12,))
    for source, refused in ((column, (SIMPLE, ND, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS)), (made, (F_CONTIGUOUS,))):
        for flags in refused:
            with pytest.raises(BufferError):
                get(source, flags)


def test_views(made):
    rows = made.tolist()
    assert made.column(2).tolist() == [row[2] for row in rows] and [row.tolist() for row in made] == rows
    assert made[1][2].tolist() == rows[1][2] and made[1][2].shape == ()
    for bad in (lambda: made.column(3), lambda: made.column(-1), lambda: made[0].column(0), lambda: made[3]):
        with pytest.raises(IndexError):
            bad()


@pytest.mark.parametrize("options", [{"max_version": [1, 0]}, {"max_version": (1, "0")}, {"dl_device": 1}])
def test_arguments_of_dlpack(made, options):
    with pytest.raises(TypeError):
        made.__dlpack__(**options)


class Producer:
    """Has DLPack's methods, and may lie."""

    def __init__(self, source, device=(1, 0)):
        self.source, self.device = source, device

    def __dlpack__(self, **options):
        return self.source.__dlpack__(**options) if hasattr(self.source, "__dlpack__") else self.source

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("producer", [Producer("no capsule"), Producer(None), Producer(floats(2, 2), device=[1, 0])])
def test_producers_that_are_wrong(producer):
    with pytest.raises((TypeError, ValueError)):
        attend.similarity(producer, producer)


def test_a_producer_without_max_version(made):
    class Old(Producer):
        def __dlpack__(self):
            return self.source.__dlpack__()

    assert attend.similarity(Old(made), made).tolist() == attend.similarity(made, made).tolist()


def test_numbers_that_are_not_aligned():
    memory = bytearray(8 * 4 + 1)
    unaligned = memoryview(memory)[1:].cast("f", (4, 2))
    with pytest.raises(ValueError, match="multiples of 4: a copy does"):
        attend.similarity(unaligned, unaligned)


def test_rows_that_are_not_embeddings():
    for bad in (memoryview(array.array("d", [1, 2])), memoryview(array.array("i", [1, 2])), floats(1, 2, 2)):
        with pytest.raises((TypeError, ValueError)):
            attend.similarity(bad, bad)
    columns = attend.similarity(floats(4, 2), floats(4, 2)).column(0)
    assert attend.similarity(columns, columns, "dot").shape == (1, 1)
    assert attend.semantic_search(columns, columns)[0][0]["corpus_id"] == 0


class Capsule(ctypes.Structure):
    """An ArrowArray"""


Capsule._fields_ = [(name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")] + [
    ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(Capsule))),
    ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p), ("manager", ctypes.c_void_p)]


def test_arrow_lets_a_child_be_moved_away(made):
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    expected = [x for row in made.tolist() for x in row]
    capsules = made.__arrow_c_array__()
    child = Capsule.from_address(pointer(capsules[1], b"arrow_array")).children[0]
    moved = Capsule.from_buffer_copy(child.contents)
    child.contents.release = None
    del made, capsules, child  # releases the list
    assert moved.length == 9
    assert list(ctypes.cast(moved.buffers[1], ctypes.POINTER(ctypes.c_float))[:9]) == expected
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(moved.release)(ctypes.addressof(moved))
    assert not moved.release


def test_a_generator_that_raises_is_not_mistaken_for_a_wrong_type():
    def texts():
        yield "a"
        raise TypeError("mine")

    try:
        tokenizer = attend.Tokenizer(NAME, local_files_only=True)
    except FileNotFoundError:
        pytest.skip(f"attend fetch {NAME} downloads it")
    with pytest.raises(TypeError, match="^mine$"):
        tokenizer.encode_batch(texts())
    with pytest.raises(ValueError, match=r"ids\[1\]: -1 is not in the vocabulary"):
        tokenizer.decode([0, -1])
