#!/usr/bin/env python3
"""Writes src/text/unicode_v8_table.h: what the `tokenizers` package knows of each code point.

    pip install tokenizers==0.23.*
    tests/golden/make_unicode8.py > src/text/unicode_v8_table.h

The package's BERT tables are those of Unicode 8 (categories), 9 (decomposition) and of the Rust standard library
(lower case), so no Unicode library of today gives its answers. This script asks the package itself, one code point
after the other, and writes ranges. What never changes between versions of Unicode (decompositions and combining
classes of old characters) is left to utf8proc; unicode_v8.c says how the two meet.
"""
import unicodedata

from tokenizers import normalizers, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def bert(**on):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**off, **on}).normalize_str


clean, cjk, strip, lower = (
    bert(clean_text=True), bert(handle_chinese_chars=True), bert(strip_accents=True), bert(lowercase=True))
nfd = normalizers.NFD().normalize_str
split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str


def classes(c):
    s, found = chr(c), []
    words = [word for word, _ in split("a" + s + "b")]
    if clean(s) == "":
        found.append("REMOVED")
    if words == ["a", "b"]:
        found.append("SPACE")
    elif words == ["a", s, "b"]:
        found.append("PUNCTUATION")
    else:
        assert words == ["a" + s + "b"]
    assert clean(s) in ("", " " if "SPACE" in found else s)
    if strip(s) == "" and nfd(s) == s:
        found.append("MARK")
    if cjk(s) == f" {s} ":
        found.append("CJK")
    else:
        assert cjk(s) == s
    return " | ".join(found)


# One old mark of each combining class, which tell a new mark's class by how they change places with it.
OLD = unicodedata.ucd_3_2_0
RULER = {}
for code in POINTS:
    if OLD.combining(chr(code)) and nfd(chr(code)) == chr(code):
        RULER.setdefault(OLD.combining(chr(code)), chr(code))


def combining(c):
    s = chr(c)
    if nfd("a" + RULER[240] + s)[1] != s and nfd("a" + s + RULER[1])[1] == s:
        return 0
    return max((k for k, mark in RULER.items() if nfd("a" + mark + s)[1] == mark), default=0)


def lower_offset(c):
    low = lower(chr(c))
    assert len(low) == 1 or c == 0x130  # "i" and a dot: unicode_v8.c has it
    return ord(low[0]) - c if len(low) == 1 else 0


def ranges(value, start=0):
    """[first, last, value] for each stretch of equal values that are not empty."""
    out = []
    for c in POINTS:
        v = value(c) if c >= start else None
        if not v:
            continue
        if out and out[-1][1] == c - 1 and out[-1][2] == v:
            out[-1][1] = c
        else:
            out.append([c, c, v])
    return out


def table(kind, name, comment, rows):
    print(f"\n/* {comment} */\nstatic const {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        cell = " {" + ", ".join(row) + "},"
        if len(line + cell) > 118:
            print(line)
            line = "   "
        line += cell
    print(line + "\n};")


def code(c):
    return f"0x{c:04X}"


assert unicodedata.unidata_version == "14.0.0", "run with Python 3.11: its tables are those of Unicode 14"
print("/* Made by tests/golden/make_unicode8.py from the package tokenizers 0.23; not edited by hand. */")
table("class_range", "class_table", "Everything else is part of a word.",
      [(code(a), code(b), v) for a, b, v in ranges(classes)])
table("number_range", "combining_table", "Canonical combining classes of characters that are not a MARK.",
      [(code(a), code(b), str(v)) for a, b, v in
       ranges(lambda c: 0 if classes(c) == "MARK" or nfd(chr(c)) != chr(c) else combining(c))])
table("number_range", "decomposing_table", "Beyond U+FFFF, these alone have a canonical decomposition.",
      [(code(a), code(b), "1") for a, b, v in ranges(lambda c: int(nfd(chr(c)) != chr(c)), 0x10000)])
table("number_range", "lower_table", "Lower case minus upper case, of pairs younger than Unicode 14.",
      [(code(a), code(b), str(v)) for a, b, v in
       ranges(lambda c: 0 if chr(c).lower() == lower(chr(c)) else lower_offset(c))])
