"""load_safetensors: every type of the format, and files that are refused."""
import gc
import json
import struct

import pytest

import attend

TYPES = {"F32": ("float32", "f", 4), "F16": ("float16", "e", 2), "BF16": ("bfloat16", None, 2), "I32": ("int32", "i", 4),
         "I64": ("int64", "q", 8), "BOOL": ("bool", "?", 1), "I8": ("int8", "b", 1), "U8": ("uint8", "B", 1),
         "I16": ("int16", "h", 2), "U16": ("uint16", "H", 2), "U32": ("uint32", "I", 4), "U64": ("uint64", "Q", 8),
         "F64": ("float64", "d", 8), "C64": ("complex64", "Zf", 8), "F8_E4M3": ("float8_e4m3fn", None, 1),
         "F8_E4M3FNUZ": ("float8_e4m3fnuz", None, 1), "F8_E5M2": ("float8_e5m2", None, 1),
         "F8_E5M2FNUZ": ("float8_e5m2fnuz", None, 1), "F8_E8M0": ("float8_e8m0fnu", None, 1)}


def write(path, tensors, metadata=None, pad=True):
    """tensors: {name: (type, shape, bytes)}"""
    header, at = {} if metadata is None else {"__metadata__": metadata}, 0
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8 if pad else 0)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))
    return path


@pytest.mark.parametrize("kind", TYPES)
def test_a_tensor_of_each_type(tmp_path, kind):
    name, code, size = TYPES[kind]
    data = bytes(1 if kind == "BOOL" else (7 * i + 1) % 100 for i in range(6 * size))
    found = attend.load_safetensors(write(tmp_path / "a.safetensors", {"t": (kind, [2, 3], data)}))["t"]
    assert found.dtype == name and found.shape == (2, 3) and found.strides == (3 * size, size)
    if code is None:
        with pytest.raises(BufferError, match="DLPack"):
            memoryview(found)
    else:
        view = memoryview(found)
        assert view.readonly and view.format == code and view.tobytes() == data
    assert '"dltensor_versioned"' in repr(found.__dlpack__(max_version=(1, 0)))
    with pytest.raises(BufferError, match="read-only"):
        found.__dlpack__()


def test_names_order_metadata_and_lifetime(tmp_path):
    path = write(tmp_path / "a.safetensors", {"z": ("F32", [2], struct.pack("2f", 1, 2)), "a": ("I64", [], b"\7" + bytes(7)),
                                              "none": ("F16", [0, 5], b"")}, {"format": "pt", "ä": ""})
    found = attend.load_safetensors(path)
    assert isinstance(found, dict) and sorted(found) == ["a", "none", "z"]
    assert found.metadata == {"format": "pt", "ä": ""} and found["none"].shape == (0, 5) and found["a"].shape == ()
    kept = found["z"]
    path.unlink()
    del found
    gc.collect()
    assert kept.tolist() == [1, 2]
    assert attend.load_safetensors(write(path, {})).metadata == {}


def test_tensors_at_odd_bytes_are_aligned(tmp_path):
    data = struct.pack("2d", 0.1, -1e300)
    path = write(tmp_path / "a.safetensors", {"byte": ("U8", [1], b"\1"), "t": ("F64", [2], data)}, pad=False)
    assert attend.load_safetensors(str(path))["t"].tolist() == [0.1, -1e300]


@pytest.mark.parametrize("error, content, message", [
    (ValueError, b"", "empty|too few"), (ValueError, b"<html>not found</html>", "a web page"),
    (ValueError, struct.pack("<Q", 2) + b"[]", "not a JSON object"), (ValueError, b"\xff" * 64, "should have"),
    (ValueError, struct.pack("<Q", 60) + b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}      ' + bytes(4), "lies at"),
])
def test_files_that_are_refused(tmp_path, error, content, message):
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(error, match=message) as found:
        attend.load_safetensors(tmp_path / "a.safetensors")
    assert isinstance(found.value, attend.Error) and str(tmp_path) in str(found.value)


def test_what_is_not_a_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        attend.load_safetensors(tmp_path / "none")
    with pytest.raises(OSError):
        attend.load_safetensors(tmp_path)
    with pytest.raises(TypeError):
        attend.load_safetensors(5)
    with pytest.raises(attend.UnsupportedError, match='"t" is F4'):
        attend.load_safetensors(write(tmp_path / "a.safetensors", {"t": ("F4", [2], b"\1")}))


def test_numpy_and_torch_take_them_in_place(tmp_path):
    numpy = pytest.importorskip("numpy")
    data = numpy.arange(6, dtype="f")
    path = write(tmp_path / "a.safetensors", {"t": ("F32", [2, 3], data.tobytes()), "b": ("BF16", [1], b"\x80\x3f")})
    found = attend.load_safetensors(path)
    array = numpy.asarray(found["t"])
    assert (array.ravel() == data).all() and not array.flags.writeable
    if numpy.__version__ >= "2.1":  # earlier ones ask for DLPack without a flag for read-only memory
        assert not numpy.from_dlpack(found["t"]).flags.writeable
    q = found["t"]
    assert attend.scaled_dot_product_attention(q, q, q).shape == (2, 3)
    with pytest.raises(attend.ArgumentError, match="out: "):
        attend.scaled_dot_product_attention(q, q, q, out=q)
    torch = pytest.importorskip("torch")
    assert torch.from_dlpack(found["b"]).tolist() == [1.0]
    assert torch.from_dlpack(found["b"]).dtype == torch.bfloat16
