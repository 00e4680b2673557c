#!/usr/bin/env python3
"""Writes a picture of each class of Fashion-MNIST (MIT license), the first one of its test set, as a PNG file.
usage: fashion-mnist-examples.py DATA FOLDER     DATA: the folder with t10k-images-idx3-ubyte.gz and its labels"""
import gzip
import pathlib
import struct
import sys
import zlib

NAMES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle-boot")
SIDE = 28


def read(path, header):
    """The bytes after the header of an IDX file, which begins with two zeros, a type and a number of dimensions."""
    data = gzip.open(path).read()
    if data[:4] != bytes((0, 0, 8, (header - 4) // 4)):
        sys.exit(f"{path}: not an IDX file of bytes with {(header - 4) // 4} dimensions")
    return data[header:]


def png(pixels):
    """A gray picture of SIDE x SIDE pixels, each line unfiltered."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    lines = b"".join(b"\0" + pixels[i:i + SIDE] for i in range(0, SIDE * SIDE, SIDE))
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


if len(sys.argv) != 3:
    sys.exit(__doc__.splitlines()[1])
data, folder = (pathlib.Path(name) for name in sys.argv[1:])
images, labels = read(data / "t10k-images-idx3-ubyte.gz", 16), read(data / "t10k-labels-idx1-ubyte.gz", 8)
folder.mkdir(parents=True, exist_ok=True)
for number, name in enumerate(NAMES):
    at = labels.index(number) * SIDE * SIDE
    (folder / f"{name}.png").write_bytes(png(images[at:at + SIDE * SIDE]))
