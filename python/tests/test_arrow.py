"""Texts of Arrow arrays of every layout, made by hand as its specification has them, and damaged ones."""
import ctypes
import pathlib
import struct

import pytest

import attend

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
TEXTS = ["a b", "", "in water", "twelve bytes", "thirteen byte", "ä" * 20]


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


RELEASE = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p), ("dictionary", ctypes.POINTER(Schema)),
                   ("release", RELEASE), ("manager", ctypes.c_void_p)]
Array._fields_ = [(name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")] + [
    ("buffers", ctypes.POINTER(ctypes.c_char_p)), ("children", ctypes.c_void_p), ("dictionary", ctypes.POINTER(Array)),
    ("release", RELEASE), ("manager", ctypes.c_void_p)]
GET_SCHEMA, GET_NEXT = (ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(kind)) for kind in (Schema, Array))
GET_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)  # an address: ctypes would not free a text
Stream._fields_ = [("get_schema", GET_SCHEMA), ("get_next", GET_NEXT), ("get_error", GET_ERROR), ("release", RELEASE),
                   ("manager", ctypes.c_void_p)]

capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype, capsule_new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


REASON = ctypes.create_string_buffer(b"out of order")


def capsule(struct_, name):
    return capsule_new(ctypes.addressof(struct_), name, None)


class Strings:
    """An array by its buffers, bytes or None"""

    def __init__(self, format, length, buffers, offset=0, dictionary=None):
        self.kept = (ctypes.c_char_p * max(1, len(buffers)))(*buffers)
        self.schema = Schema(format=format.encode(), dictionary=ctypes.pointer(dictionary.schema) if dictionary else None)
        self.array = Array(length=length, offset=offset, n_buffers=len(buffers), buffers=self.kept,
                           dictionary=ctypes.pointer(dictionary.array) if dictionary else None)
        self.dictionary, self.buffers = dictionary, buffers

    def __arrow_c_array__(self, requested_schema=None):
        return capsule(self.schema, b"arrow_schema"), capsule(self.array, b"arrow_array")


def by_offsets(texts, large=False):
    data, ends = b"", [0]
    for text in texts:
        data += text.encode()
        ends.append(len(data))
    return [None, struct.pack(f"={len(ends)}{'q' if large else 'i'}", *ends), data]


def by_views(texts):
    views, data = b"", b""
    for text in texts:
        given = text.encode()
        if len(given) <= 12:
            views += struct.pack("=i12s", len(given), given)
        else:
            views += struct.pack("=i4sii", len(given), given, 0, len(data))
            data += given
    return [None, views, data, struct.pack("=q", len(data))]


LAYOUTS = {
    "u": lambda texts: Strings("u", len(texts), by_offsets(texts)),
    "U": lambda texts: Strings("U", len(texts), by_offsets(texts, True)),
    "vu": lambda texts: Strings("vu", len(texts), by_views(texts)),
    **{f"dictionary of {code}": lambda texts, code=code, form=form: Strings(
        code, len(texts), [None, struct.pack(f"={len(texts)}{form}", *range(len(texts) - 1, -1, -1))],
        dictionary=LAYOUTS["u"](texts[::-1])) for code, form in zip("cCsSiIlL", "bBhHiIqQ")},
    "dictionary of views": lambda texts: Strings("i", len(texts), [None, struct.pack(f"={len(texts)}i", *range(len(texts)))],
                                                 dictionary=LAYOUTS["vu"](texts)),
}


@pytest.fixture(name="tokenizer", scope="module")
def fixture_tokenizer():
    return attend.Tokenizer(GOLDEN / "classifiers/bert")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout(tokenizer, layout):
    expected = tokenizer.encode_batch(TEXTS)
    array = LAYOUTS[layout](TEXTS)
    assert tokenizer.encode_batch(array) == expected
    array.array.offset, array.array.length = 2, 3
    assert tokenizer.encode_batch(array) == expected[2:5]
    assert tokenizer.encode_batch(LAYOUTS[layout]([])) == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nulls(layout):
    model = attend.SentenceTransformer(GOLDEN / "tiny_sentence")
    array = LAYOUTS[layout](["a b", "a", "c"])
    array.kept[0] = b"\x05"  # the second is null
    with pytest.raises(ValueError, match=r"inputs\[1\]: is null"):
        model.encode(array)
    found, expected = model.encode(array, nulls="zero").tolist(), model.encode(["a b", "c"]).tolist()
    assert [found[0], found[2]] == expected and not any(found[1])
    found = model.encode(["a b", None, "c"], nulls="zero", convert_to_numpy=False).tolist()
    assert [found[0], found[2]] == expected and not any(found[1])


DAMAGED = {
    "negative offset": lambda: Strings("u", 1, [None, struct.pack("=ii", -1, 2), b"ab"]),
    "descending offsets": lambda: Strings("u", 1, [None, struct.pack("=ii", 2, 1), b"ab"]),
    "no offsets": lambda: Strings("u", 1, [None, None, b"ab"]),
    "two buffers": lambda: Strings("u", 1, [None, struct.pack("=ii", 0, 2)]),
    "negative length": lambda: Strings("u", -1, by_offsets(["a"])),
    "negative array offset": lambda: Strings("u", 1, by_offsets(["a"]), offset=-1),
    "a view of a buffer that is not there": lambda: Strings("vu", 1, [None, struct.pack("=i4sii", 13, b"thir", 1, 0), b"x" * 13, struct.pack("=q", 13)]),
    "a view beyond its buffer": lambda: Strings("vu", 1, [None, struct.pack("=i4sii", 13, b"thir", 0, 1), b"x" * 13, struct.pack("=q", 13)]),
    "a view before its buffer": lambda: Strings("vu", 1, [None, struct.pack("=i4sii", 13, b"thir", 0, -1), b"x" * 13, struct.pack("=q", 13)]),
    "a view of negative length": lambda: Strings("vu", 1, [None, struct.pack("=i12s", -1, b""), struct.pack("=q", 0)]),
    "views without sizes": lambda: Strings("vu", 1, [None, struct.pack("=i12s", 1, b"a"), b"x", None]),
    "a number beyond the dictionary": lambda: Strings("i", 1, [None, struct.pack("=i", 2)], dictionary=LAYOUTS["u"](["a", "b"])),
    "a number before the dictionary": lambda: Strings("i", 1, [None, struct.pack("=i", -1)], dictionary=LAYOUTS["u"](["a", "b"])),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_arrays(tokenizer, name):
    with pytest.raises(attend.FormatError):
        tokenizer.encode_batch(DAMAGED[name]())


@pytest.mark.parametrize("format, message", [("i", "format \"i\""), ("+s", "it is a table"), ("z", "strings"), ("", "strings")])
def test_other_types(tokenizer, format, message):
    with pytest.raises(TypeError, match=message):
        tokenizer.encode_batch(Strings(format, 1, [None, b"\0" * 8]))
    with pytest.raises(TypeError, match="strings"):
        tokenizer.encode_batch(Strings("i", 1, [None, b"\0" * 8], dictionary=Strings("i", 1, [None, b"\0" * 8])))


class Chunks:
    """A stream of arrays, which counts what is released; fails after so many"""

    def __init__(self, arrays, fails_after=None):
        self.arrays, self.given, self.released, self.fails_after = arrays, 0, 0, fails_after
        self.release = RELEASE(self.count)
        self.stream = Stream(GET_SCHEMA(self.get_schema), GET_NEXT(self.get_next), GET_ERROR(lambda _: ctypes.addressof(REASON)), self.release)

    def count(self, address):
        self.released += 1
        ctypes.cast(address, ctypes.POINTER(Array)).contents.release = RELEASE()

    def get_schema(self, _, out):
        ctypes.memmove(out, ctypes.addressof(self.arrays[0].schema), ctypes.sizeof(Schema))
        return 0

    def get_next(self, _, out):
        if self.given == self.fails_after:
            return 5
        if self.given < len(self.arrays):
            ctypes.memmove(out, ctypes.addressof(self.arrays[self.given].array), ctypes.sizeof(Array))
            out.contents.release = self.release
            self.given += 1
        return 0

    def __arrow_c_stream__(self, requested_schema=None):
        return capsule(self.stream, b"arrow_array_stream")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_streams(tokenizer, layout):
    chunks = Chunks([LAYOUTS[layout](TEXTS[:2]), LAYOUTS[layout]([]), LAYOUTS[layout](TEXTS[2:])])
    assert tokenizer.encode_batch(chunks) == tokenizer.encode_batch(TEXTS) and chunks.released == 3
    chunks = Chunks([LAYOUTS[layout](TEXTS)] * 3, fails_after=2)
    with pytest.raises(OSError, match="out of order"):
        tokenizer.encode_batch(chunks)
    assert chunks.released == 2


def test_pyarrow_and_polars(tokenizer):
    expected = tokenizer.encode_batch(TEXTS)
    pyarrow = pytest.importorskip("pyarrow")
    array = pyarrow.array(TEXTS)
    for texts in (array, array.cast(pyarrow.large_string()), array.cast(pyarrow.string_view()), array.dictionary_encode(),
                  pyarrow.chunked_array([TEXTS[:1], TEXTS[1:]]), pyarrow.array(["x"] + TEXTS)[1:]):
        assert tokenizer.encode_batch(texts) == expected
    with pytest.raises(TypeError, match="it is a table"):
        tokenizer.encode_batch(pyarrow.table({"text": TEXTS}))
    polars = pytest.importorskip("polars")
    for texts in (polars.Series(TEXTS), polars.Series(TEXTS).cast(polars.Categorical), polars.Series(["x"] + TEXTS)[1:]):
        assert tokenizer.encode_batch(texts) == expected
