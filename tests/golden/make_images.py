#!/usr/bin/env python3
"""Writes the golden files of tests/model/image_*.c with Pillow: image files of every kind in images/, and

    images.u8    what Pillow makes of them and of resampling, one after the other
    images.txt   where each is: CASE OFFSET HEIGHT WIDTH CHANNELS
    photos.txt   of ../shared/data/photos (first argument: another folder) resampled to 224 x 224: PHOTO-FILTER
                 CRC-32 of all pixels, then some pixels: every 56th of every 56th row

Pillow converts gray of 16 bits to 255 wherever it is over 255; here it becomes its upper 8 bits, as Pillow has it for
colors of 16 bits.
"""
import io
import pathlib
import struct
import sys
import zlib

import numpy
from PIL import Image, ImageOps

HERE = pathlib.Path(__file__).parent
HEIGHT, WIDTH = 11, 17
results, places = [], []


def store(case, image):
    pixels = numpy.asarray(image, dtype=numpy.uint8)
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if pixels.tobytes() not in results:
        results.append(pixels.tobytes())
    offset = sum(len(r) for r in results[:results.index(pixels.tobytes())])
    places.append(f"{case} {offset} {' '.join(str(n) for n in pixels.shape)}\n")


def decoded(data):
    return ImageOps.exif_transpose(Image.open(io.BytesIO(data)))


def write(name, data, expected=None):
    (HERE / "images").mkdir(exist_ok=True)
    (HERE / "images" / name).write_bytes(data)
    if expected is not False:
        store(name, decoded(data).convert("RGB") if expected is None else expected)


# ---- pixels: slopes with an edge, so that flips and filters show

y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
red, green, blue = 15 * x, 25 * y, (x * y * 7 + 40 * (x > 9)) % 256
RGB = numpy.stack([red, green, blue], axis=-1).astype(numpy.uint8)
GRAY = ((red + 2 * green + blue) // 4).astype(numpy.uint8)
ALPHA = ((x * 31 + y * 17) % 256 * ((x + y) % 5 > 0)).astype(numpy.uint8)
RGB16 = RGB.astype(numpy.uint16) * 256 + (RGB[::-1] ^ 0x5A)
GRAY16 = GRAY.astype(numpy.uint16) * 256 + (GRAY[::-1] ^ 0x5A)
ALPHA16 = ALPHA.astype(numpy.uint16) * 257

# ---- JPEG


def jpeg(pixels, **options):
    out = io.BytesIO()
    (pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)).save(out, "JPEG", **options)
    return out.getvalue()


def exif(orientation, big_endian=True):
    order = ">" if big_endian else "<"
    entries = [(271, 2, 4, b"abc\0"), (274, 3, 1, struct.pack(order + "HH", orientation, 0))]
    directory = struct.pack(order + "H", len(entries))
    for tag, kind, count, value in entries:
        directory += struct.pack(order + "HHI", tag, kind, count) + value
    head = (b"MM\0*" if big_endian else b"II*\0") + struct.pack(order + "I", 8)
    return head + directory + struct.pack(order + "I", 0)


for name, options in [("444", {"subsampling": 0}), ("422", {"subsampling": 1}), ("420", {"subsampling": 2}),
                      ("progressive", {"progressive": True}), ("restarts", {"restart_marker_blocks": 1}),
                      ("rgb", {"keep_rgb": True})]:
    write(f"{name}.jpg", jpeg(RGB, **options))
write("gray.jpg", jpeg(GRAY))
write("gray_progressive.jpg", jpeg(GRAY, progressive=True))
write("one_pixel.jpg", jpeg(RGB[:1, :1]))
for orientation in range(1, 9):
    write(f"orientation_{orientation}.jpg",
          jpeg(GRAY[:7, :9], quality=40, exif=b"Exif\0\0" + exif(orientation, orientation % 2)))
write("cmyk.jpg", jpeg(Image.fromarray(RGB).convert("CMYK"), quality=40))
# The same with another transform in its Adobe segment: its colors are then YCCK.
adobe = b"Adobe\0\x64\0\0\0\0"
cmyk = jpeg(Image.fromarray(RGB).convert("CMYK"), quality=40)
assert adobe + b"\0" in cmyk
write("ycck.jpg", cmyk.replace(adobe + b"\0", adobe + b"\2"))

# ---- PNG


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def packed(rows, depth):
    """Filter 0, then samples [h, w, c] of so many bits."""
    lines = []
    for row in rows.reshape(len(rows), -1):
        bits = "".join(f"{v:0{depth}b}" for v in row.tolist())
        bits += "0" * (-len(bits) % 8)
        lines.append(bytes([0]) + bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8)))
    return b"".join(lines)


ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def png(samples, depth, kind, before=b"", after=b"", interlaced=False):
    h, w = samples.shape[:2]
    parts = [samples[t::dy, l::dx] for t, l, dy, dx in ADAM7] if interlaced else [samples]
    data = b"".join(packed(p, depth) for p in parts if p.size)
    head = struct.pack(">IIBBBBB", w, h, depth, kind, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + before + chunk(b"IDAT", zlib.compress(data, 9)) + after
            + chunk(b"IEND", b""))


def joined(colors, alpha):
    return numpy.concatenate([colors.reshape(HEIGHT, WIDTH, -1), alpha[..., None]], axis=-1)


GRAY_KIND, RGB_KIND, PALETTE_KIND, GRAY_ALPHA_KIND, RGBA_KIND = 0, 2, 3, 4, 6


def palette(colors):
    return chunk(b"PLTE", bytes((i * 37 + c * 91 + i * c) % 256 for i in range(colors) for c in range(3)))


for depth in 1, 2, 4:
    write(f"gray_{depth}.png", png(GRAY >> (8 - depth), depth, GRAY_KIND))
    write(f"palette_{depth}.png", png(GRAY >> (8 - depth), depth, PALETTE_KIND, palette(1 << depth)))
write("palette_8.png", png(GRAY >> 4, 8, PALETTE_KIND, palette(16)))
write("gray.png", png(GRAY, 8, GRAY_KIND))
write("gray_16.png", png(GRAY16, 16, GRAY_KIND), numpy.stack([GRAY16 >> 8] * 3, axis=-1))
write("rgb.png", png(RGB, 8, RGB_KIND))
write("rgb_16.png", png(RGB16, 16, RGB_KIND))
write("interlaced.png", png(RGB, 8, RGB_KIND, interlaced=True))
write("interlaced_1.png", png(GRAY >> 7, 1, GRAY_KIND, interlaced=True))
write("one_pixel.png", png(RGB[:1, :1], 8, RGB_KIND))
write("orientation_6.png", png(RGB, 8, RGB_KIND, before=chunk(b"eXIf", exif(6))))
write("orientation_8.png", png(RGB, 8, RGB_KIND, after=chunk(b"eXIf", exif(8))))
write("text.png", png(RGB, 8, RGB_KIND, chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"a" * 9999))))

HUGE = struct.pack(">IIBBBBB", 100000, 100000, 8, RGB_KIND, 0, 0, 0)
write("huge.png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", HUGE) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b""),
      expected=False)

# With alpha: without it, and over a background
BACKGROUND = (200, 30, 90)


def write_transparent(name, data):
    write(name, data)
    over = Image.new("RGB", (WIDTH, HEIGHT), BACKGROUND)
    image = Image.open(io.BytesIO(data)).convert("RGBA")
    over.paste(image, mask=image.getchannel("A"))
    store(name + "-over", over)


write_transparent("gray_alpha.png", png(joined(GRAY, ALPHA), 8, GRAY_ALPHA_KIND))
write_transparent("gray_alpha_16.png", png(joined(GRAY16, ALPHA16), 16, GRAY_ALPHA_KIND))
write_transparent("rgba.png", png(joined(RGB, ALPHA), 8, RGBA_KIND))
write_transparent("rgba_16.png", png(joined(RGB16, ALPHA16), 16, RGBA_KIND))
write_transparent("rgba_interlaced.png", png(joined(RGB, ALPHA), 8, RGBA_KIND, interlaced=True))
write_transparent("palette_transparent.png", png(GRAY >> 4, 8, PALETTE_KIND, palette(16) + chunk(
    b"tRNS", bytes(i * 19 % 256 for i in range(12)))))
write_transparent("gray_transparent.png", png(GRAY, 8, GRAY_KIND, chunk(b"tRNS", struct.pack(">H", GRAY[3, 4]))))
write_transparent("rgb_transparent.png", png(RGB, 8, RGB_KIND, chunk(b"tRNS", struct.pack(">HHH", *RGB[5, 6]))))

# ---- WebP


def webp(pixels, **options):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "WEBP", **options)
    return out.getvalue()


write("lossy.webp", webp(RGB, quality=70))
write("lossless.webp", webp(RGB, lossless=True))
write("orientation_6.webp", webp(RGB, lossless=True, exif=exif(6)))
write_transparent("lossy_alpha.webp", webp(joined(RGB, ALPHA), quality=70, exact=True))
write_transparent("lossless_alpha.webp", webp(joined(RGB, ALPHA), lossless=True, exact=True))
second = Image.fromarray(RGB[::-1])
write("animated.webp", webp(RGB, lossless=True, save_all=True, append_images=[second]))

# ---- TIFF


def tiff_page(pixels, photometric, bits=8, order="<", planar=1, tile=None, rows=None, extra=(), deflate=False, more=(),
              at=8):
    """A page at a byte of a file: pixels [h, w, c] of so many bits, in strips of `rows` rows or in tiles -> its bytes."""
    h, w, c = pixels.shape
    planes = [pixels[..., i:i + 1] for i in range(c)] if planar == 2 else [pixels]
    parts = []
    for plane in planes:
        if tile:
            filled = numpy.pad(plane, ((0, -h % tile), (0, -w % tile), (0, 0)))
            parts += [filled[t:t + tile, l:l + tile] for t in range(0, h, tile) for l in range(0, w, tile)]
        else:
            parts += [plane[t:t + (rows or h)] for t in range(0, h, rows or h)]
    data = []
    for part in parts:
        if bits == 16:
            data.append(part.astype(order + "u2").tobytes())
        else:
            data.append(b"".join(row[1:] for row in [packed(part[i:i + 1], bits) for i in range(len(part))]))
    data = [zlib.compress(d, 9) if deflate else d for d in data]
    start = [at + sum(len(d) + len(d) % 2 for d in data[:i]) for i in range(len(data))]
    body = b"".join(d + bytes(len(d) % 2) for d in data)
    entries = [(256, 4, [w]), (257, 4, [h]), (258, 3, [bits] * c), (259, 3, [8 if deflate else 1]),
               (262, 3, [photometric]), (277, 3, [c]), (284, 3, [planar]), *more]
    entries += ([(322, 4, [tile]), (323, 4, [tile]), (324, 4, start), (325, 4, [len(d) for d in data])] if tile else
                [(273, 4, start), (278, 4, [rows or h]), (279, 4, [len(d) for d in data])])
    entries += [(338, 3, list(extra))] if extra else []
    directory, values = b"", b""
    values_at = at + len(body) + 2 + 12 * len(entries) + 4
    for tag, kind, numbers in sorted(entries):
        value = b"".join(struct.pack(order + {3: "H", 4: "I"}[kind], n) for n in numbers)
        if len(value) > 4:
            value, values = struct.pack(order + "I", values_at + len(values)), values + value + bytes(len(value) % 2)
        directory += struct.pack(order + "HHI", tag, kind, len(numbers)) + value.ljust(4, b"\0")
    return body + struct.pack(order + "H", len(entries)) + directory + b"NEXT" + values, at + len(body)


def tiff(*pages, order="<"):
    """Pages (pixels, photometric, options) -> a file."""
    made, at = [], 8
    for pixels, photometric, options in pages:
        made.append(tiff_page(pixels, photometric, order=order, at=at, **options))
        at += len(made[-1][0])
    data = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", made[0][1])
    for i, (page, _) in enumerate(made):
        data += page.replace(b"NEXT", struct.pack(order + "I", made[i + 1][1] if i + 1 < len(made) else 0))
    return data


def one(pixels, photometric, order="<", **options):
    return tiff((pixels.reshape(*pixels.shape[:2], -1), photometric, options), order=order)


def by_pillow(image, **options):
    out = io.BytesIO()
    image.save(out, "TIFF", **options)
    return out.getvalue()


WHITE_IS_0, BLACK_IS_0, RGB_TIFF, PALETTE_TIFF, CMYK_TIFF = 0, 1, 2, 3, 5
INK = numpy.concatenate([255 - RGB, GRAY[..., None] // 2], axis=-1)
UPPER = [GRAY16 >> 8] * 3
for bits in 1, 2, 4:
    write(f"gray_{bits}.tif", one(GRAY >> (8 - bits), BLACK_IS_0, bits=bits))
write("white_1.tif", one(GRAY >> 7, WHITE_IS_0, bits=1))
write("white_8.tif", one(GRAY, WHITE_IS_0))
write("gray_16.tif", one(GRAY16, BLACK_IS_0, bits=16), numpy.stack(UPPER, axis=-1))
write("gray_16_big_endian.tif", one(GRAY16, BLACK_IS_0, order=">", bits=16), numpy.stack(UPPER, axis=-1))
write("strips.tif", one(RGB, RGB_TIFF, rows=4, deflate=True))
write("tiles.tif", one(RGB, RGB_TIFF, tile=16, deflate=True))
write("planes.tif", one(RGB, RGB_TIFF, planar=2, rows=5))
write("planes_tiles.tif", one(RGB, RGB_TIFF, planar=2, tile=16, deflate=True), RGB)
write("rgb_16.tif", one(RGB16, RGB_TIFF, order=">", bits=16))
for bits in 1, 4, 8:
    colors = 1 << bits if bits < 8 else 256
    table = [(i * 37 + c * 91 + i * c) % 256 * 256 + i for c in range(3) for i in range(colors)]
    write(f"palette_{bits}.tif", one(GRAY >> (8 - bits), PALETTE_TIFF, bits=bits, more=[(320, 3, table)]))
write("cmyk.tif", one(INK, CMYK_TIFF))
write("orientation_6.tif", one(RGB, RGB_TIFF, more=[(274, 3, [6])]))
write("pages.tif", tiff((RGB, RGB_TIFF, {}), (RGB[::-1], RGB_TIFF, {})))
write("lzw.tif", by_pillow(Image.fromarray(RGB), compression="tiff_lzw"))
write("group4.tif", by_pillow(Image.fromarray(GRAY).point(lambda v: 255 * (v > 99), "1"), compression="group4"))
write("jpeg.tif", by_pillow(Image.fromarray(RGB).convert("YCbCr"), compression="jpeg"))
write("ycbcr.tif", by_pillow(Image.fromarray(RGB).convert("YCbCr"), compression="tiff_lzw"))
ALL_GRAY = numpy.stack([GRAY] * 3, axis=-1)
write("no_alpha.tif", one(GRAY, BLACK_IS_0, extra=[2]), ALL_GRAY)  # which its header claims to be there
write("planes_extra.tif", one(joined(GRAY, ALPHA), BLACK_IS_0, planar=2, extra=[0]), ALL_GRAY)
write_transparent("gray_alpha.tif", one(joined(GRAY, ALPHA), BLACK_IS_0, extra=[2]))
write_transparent("rgba.tif", one(joined(RGB, ALPHA), RGB_TIFF, extra=[2]))
write_transparent("rgba_premultiplied.tif", one(joined(RGB * (ALPHA[..., None] / 255.0) + 0.5, ALPHA).astype(numpy.uint8),
                                                RGB_TIFF, extra=[1]))
write("preview.tif", one(RGB[:2, :2], RGB_TIFF, more=[(254, 4, [1])]), expected=False)
write("real.tif", by_pillow(Image.fromarray(GRAY.astype(numpy.float32))), expected=False)
write("huge.tif", one(RGB[:1, :1], RGB_TIFF).replace(struct.pack("<HHII", 256, 4, 1, 1), struct.pack("<HHII", 256, 4, 1, 10**5))
      .replace(struct.pack("<HHII", 257, 4, 1, 1), struct.pack("<HHII", 257, 4, 1, 10**5)), expected=False)


# ---- other formats, which are refused

for name, kind in ("small.gif", "GIF"), ("small.bmp", "BMP"), ("small.avif", "AVIF"):
    out = io.BytesIO()
    Image.fromarray(RGB[:1, :1]).save(out, kind)
    write(name, out.getvalue()[:64], expected=False)

# ---- resampling, and conversion to gray

FILTERS = {"nearest": Image.NEAREST, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
SIZES = [(5, 7), (13, 25), (5, 17), (11, 3), (1, 1), (12, 16), (3, 31)]
for name, number in FILTERS.items():
    for height, width in SIZES:
        store(f"{name}-{height}-{width}", Image.fromarray(RGB).resize((width, height), number))
    store(f"gray-{name}-6-9", Image.fromarray(GRAY).resize((9, 6), number))
store("gray", Image.fromarray(GRAY))
store("luma", Image.fromarray(RGB).convert("L"))

(HERE / "images.u8").write_bytes(b"".join(results))
(HERE / "images.txt").write_text("".join(places))

# ---- photos

photos = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "../../../shared/data/photos")
lines = []
for path in sorted(p for p in photos.rglob("*") if p.suffix in (".png", ".jpg")):
    photo = Image.open(path).convert("RGB")
    for name in "bilinear", "bicubic", "lanczos":
        small = numpy.asarray(photo.resize((224, 224), FILTERS[name]))
        some = " ".join(str(v) for v in small[::56, ::56].ravel())
        lines.append(f"{path.relative_to(photos)}-{name} {zlib.crc32(small.tobytes())} {some}\n")
(HERE / "photos.txt").write_text("".join(lines))
