"""Attention with a score of your own in C: cc compiles it, ctypes loads it, attend calls it on all threads, without the
GIL.

    python3 own_score.py
"""
import array
import ctypes
import pathlib
import subprocess
import tempfile

import attend

with tempfile.TemporaryDirectory() as folder:
    library = pathlib.Path(folder) / "l1_score.so"
    source = pathlib.Path(__file__).with_name("l1_score.c")
    subprocess.run(["cc", "-O3", "-shared", "-fPIC", "-I", attend.get_include(), "-o", library, source], check=True)
    c = ctypes.CDLL(str(library))  # stays loaded

l1 = attend.Score(c.formula, derivative=c.derivative, tile=c.tile, name="l1")


def numbers(*values, shape):
    return memoryview(array.array("f", values)).cast("B").cast("f", shape)


query = numbers(0, 0, 1, 1, shape=(2, 2))  # [time, dim]
key = value = numbers(0, 0, 0, 1, 4, 4, shape=(3, 2))
attend.verify_attention(query, key, value, score=l1)  # do formula, derivative and tile agree?
out, lse = attend.scaled_dot_product_attention(query, key, value, score=l1, scale=1.0, return_lse=True)
for row in out.tolist():
    print(*(f"{x:.4f}" for x in row))
dquery, dkey, dvalue = attend.attention_backward(out, query, key, value, out, lse, score=l1, scale=1.0)
print("gradient of the first query:", *(f"{x:.4f}" for x in dquery.tolist()[0]))
