#!/usr/bin/env python3
"""Compares the errors of weights that attend quantizes with those of ggml: Q4_K, Q5_K and Q6_K, and the bytes of the others.

    pip install gguf==0.19.* llama-cpp-python torch
    tests/golden/check_quantized.py [LIBATTEND.so]

The root mean square of x - its number in blocks, for normal numbers, for those of a distribution with heavy tails (Student's
t), for uniform ones, for positive ones and for ones with outliers: at most ggml's, on each. Blocks of 32 have the bytes of the
package gguf. Exit code 3: ggml (llama-cpp-python) is not installed, so nothing was compared.
"""
import ctypes
import importlib.util
import pathlib
import sys

import numpy
import torch

from check_numbers import numbers

ROOT = pathlib.Path(__file__).parents[2]
ROWS, WIDTH = 256, 1024
# name: number of ggml, number of attend, numbers and bytes of a block
TYPES = {"Q4_K": (12, 14, 256, 144), "Q5_K": (13, 15, 256, 176), "Q6_K": (14, 16, 256, 210)}
BYTES = {"Q8_0": (6, 34), "Q4_0": (7, 18), "Q4_1": (8, 20), "Q5_0": (10, 22), "Q5_1": (11, 24)}


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int), ("dim", ctypes.c_int64 * 6),
                ("stride", ctypes.c_int64 * 6)]


def ggml():
    found = importlib.util.find_spec("llama_cpp")
    if not found:
        return None
    lib = ctypes.CDLL(str(pathlib.Path(found.origin).parent / "lib/libggml-base.so"))
    lib.ggml_quantize_chunk.restype = ctypes.c_size_t
    lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + 3 * [ctypes.c_int64] + [ctypes.c_void_p]
    return lib


def attend_quantize(lib, context, x, dtype, size):
    out = numpy.zeros(size, numpy.uint8)
    views = []
    for array, of in (x, 0), (out, dtype):
        t = Tensor()
        dim = (ctypes.c_int64 * 2)(*x.shape)
        assert lib.att_wrap(ctypes.byref(t), ctypes.c_void_p(array.ctypes.data), of, 2, dim, None) == 0
        views.append(t)
    assert lib.att_tensor_convert(context, ctypes.byref(views[0]), ctypes.byref(views[1])) == 0
    return out


def cases():
    random = numpy.random.default_rng(1)
    yield "normal", random.standard_normal((ROWS, WIDTH))
    yield "Student's t, 4 degrees", random.standard_t(4, (ROWS, WIDTH)) / 50
    yield "uniform", random.uniform(-1, 1, (ROWS, WIDTH))
    yield "positive", random.exponential(1, (ROWS, WIDTH))
    x = random.standard_normal((ROWS, WIDTH)) / 50
    x[random.random(x.shape) < 0.002] *= 20
    yield "outliers", x
    yield "cubes, those of tests/core/quantize_k.c", numbers(8, ROWS, WIDTH, dtype=torch.float32).numpy() ** 3


def main():
    theirs = ggml()
    if not theirs:
        print("ggml is not here: pip install llama-cpp-python")
        return 3
    from gguf import GGMLQuantizationType, quants
    ours = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/libattend.so"))
    context = ctypes.c_void_p()
    assert ours.att_open(ctypes.byref(context), None) == 0
    worse = 0
    for title, x in cases():
        x = numpy.ascontiguousarray(x.astype(numpy.float32))
        for name, (number, dtype, block, bytes_of) in TYPES.items():
            size, kind, errors = x.size // block * bytes_of, GGMLQuantizationType[name], []
            out = numpy.zeros(size, numpy.uint8)
            assert theirs.ggml_quantize_chunk(number, x.ctypes.data, out.ctypes.data, 0, ROWS, WIDTH, None) == size
            for data in out, attend_quantize(ours, context, x, dtype, size):
                back = quants.dequantize(data.reshape(ROWS, -1), kind).astype(numpy.float64)
                errors.append(numpy.sqrt(numpy.mean((back - x) ** 2)) / x.std(dtype=numpy.float64))
            worse += errors[1] > errors[0]
            print(f"{name}, {title}: {errors[1]:.5f} of the deviation; ggml {errors[0]:.5f}; {errors[1] / errors[0]:.3f} x")
        for name, (dtype, bytes_of) in BYTES.items():
            want = quants.quantize(x, GGMLQuantizationType[name]).reshape(-1)
            same = numpy.array_equal(attend_quantize(ours, context, x, dtype, x.size // 32 * bytes_of), want)
            worse += not same
            print(f"{name}, {title}: {'the' if same else 'NOT the'} bytes of the package gguf")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
