#!/usr/bin/env python3
"""Writes src/text/pipeline/unicode_v16_table.h: characters that PCRE2 and utf8proc may not know yet, as the regular
expressions of the `tokenizers` package have them (Oniguruma 6.9.10, Unicode 16), and marks that its StripAccents does
not know.

    pip install tokenizers==0.23.*
    tests/golden/make_unicode16.py          with a Python that has Unicode 14: 3.11
"""
import pathlib
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

TO = pathlib.Path(__file__).parent / "../../src/text/pipeline/unicode_v16_table.h"
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
TEXT = "".join(map(chr, ALL))
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Cf".split()


def matched(pattern):
    left = {c for piece, _ in pre_tokenizers.Split(Regex(pattern), "removed").pre_tokenize_str(TEXT) for c in piece}
    return [c for c in ALL if chr(c) not in left]


def ranges(chars):
    out = []
    for c in sorted(chars):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def rows(items, width=118):
    line = "   "
    for item in items:
        if len(line) + len(item) + 1 > width:
            yield line
            line = "   "
        line += " " + item
    yield line


assert unicodedata.unidata_version == "14.0.0"
newer = sorted((r, k) for k in CATEGORIES
               for r in ranges(c for c in matched(rf"\p{{{k}}}") if unicodedata.category(chr(c)) == "Cn"))
kept = set(normalizers.StripAccents().normalize_str(TEXT))
strange = ranges(c for c in ALL if (chr(c) in kept) == (unicodedata.category(chr(c))[0] == "M"))
TO.write_text("\n".join([
    "/* Made by tests/golden/make_unicode16.py. */", "",
    "/* Characters of Unicode 15 and 16, and their categories. */",
    "static const newer_range newer_table[] = {",
    *rows(f'{{0x{a:X}, 0x{b:X}, "{k}"}},' for (a, b), k in newer), "};", "",
    "/* Characters of Unicode 14: marks that StripAccents keeps, and others that it removes. */",
    "static const uint32_t strange_marks[][2] = {",
    *rows(f"{{0x{a:X}, 0x{b:X}}}," for a, b in strange), "};", ""]))
