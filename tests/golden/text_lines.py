"""Lines of text for golden files, and their hashes; tests/fixtures/text_lines.h makes the same lines."""
import pathlib

HERE = pathlib.Path(__file__).parent
SNIPPETS = (HERE / "snippets.txt").read_bytes().split(b"\n")[:-1]
N_LINES = 10000
MASK = 2**64 - 1

# Code points to choose from; the first of a pair may be the last.
RANGES = [
    (0x61, 0x7A), (0x20, 0x7E), (0x00, 0x20), (0x80, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF),
    (0x8D4, 0x8E1), (0x900, 0xDFF), (0x1B00, 0x1BFF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x3000, 0x30FF),
    (0x302E, 0x302F), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFFFF), (0x1D15E, 0x1D182), (0x1E000, 0x1E02A),
    (0x1F300, 0x1F64F), (0x1F3FB, 0x1F3FF), (0x200D, 0x200D), (0xFE0F, 0xFE0F), (0x0, 0xD7FF), (0xE000, 0x10FFFF),
]


class Random:
    """splitmix64 (Steele, Lea, Flood 2014)."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        return (z ^ z >> 31) % n


def line(number):
    random, out = Random(number), b""
    for _ in range(1 + random.below(12)):
        kind = random.below(16)
        if kind < 7:
            out += SNIPPETS[random.below(len(SNIPPETS))]
        elif kind < 13:  # a few characters of one range
            first, last = RANGES[random.below(len(RANGES))]
            for _ in range(1 + random.below(6)):
                out += chr(first + random.below(last - first + 1)).encode()
        elif kind < 14:  # bytes that are mostly no UTF-8
            for _ in range(1 + random.below(5)):
                out += bytes([random.below(256)])
        elif kind < 15:  # a word about as long as a word may be
            letter = b"a" + "é".encode()[: 2 * random.below(2)]
            out += letter * (45 + random.below(60))
        else:
            out += b" "
        if random.below(2):
            out += b" "
    return out


def fnv(data, h=2166136261):
    for byte in data:
        h = (h ^ byte) * 16777619 & 0xFFFFFFFF
    return h


def hash_ids(ids, h=2166136261):
    return fnv(b"".join(i.to_bytes(4, "little") for i in ids), h)
