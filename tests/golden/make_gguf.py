#!/usr/bin/env python3
"""Writes tiny.gguf, and the numbers of its tensors, for tests/io/gguf.c, with the `gguf` package of llama.cpp.

    pip install gguf==0.17.*
    tests/golden/make_gguf.py

    tiny.gguf         values of each type, and a tensor of each type that is supported
    tiny_gguf.f32     the numbers of its tensors in the order of their names, dequantized
"""
import numpy as np
from gguf import GGMLQuantizationType as T, GGUFWriter, quants

from text_lines import HERE, Random

random = Random(7)
w = GGUFWriter(str(HERE / "tiny.gguf"), "llama")
w.add_uint8("a.u8", 200)
w.add_int8("a.i8", -100)
w.add_uint16("a.u16", 60000)
w.add_int16("a.i16", -30000)
w.add_uint32("a.u32", 4000000000)
w.add_int32("a.i32", -2000000000)
w.add_uint64("a.u64", 1 << 40)
w.add_int64("a.i64", -(1 << 40))
w.add_float32("a.f32", 0.1)
w.add_float64("a.f64", 0.1)
w.add_bool("a.yes", True)
w.add_bool("a.no", False)
w.add_string("a.text", "天気 fine")
w.add_array("a.texts", ["<unk>", "", "▁a", "猫"])
w.add_array("a.numbers", [0.5, -1.5, 3.0])
w.add_array("a.ints", [1, -2, 3])
numbers = {}
for kind in (T.F32, T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1):
    x = np.array([random.below(2001) / 500 - 2 for _ in range(3 * 64)], np.float32).reshape(3, 64)
    q = quants.quantize(x, kind)
    name = f"w.{kind.name}"
    w.add_tensor(name, q, raw_dtype=kind)
    numbers[name] = quants.dequantize(q, kind).astype(np.float32).reshape(-1)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
np.concatenate([numbers[k] for k in sorted(numbers)]).tofile(HERE / "tiny_gguf.f32")
