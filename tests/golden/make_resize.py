#!/usr/bin/env python3
"""Writes resize.txt: torch.nn.functional.interpolate in float64, by sizes and by factors, with and without antialias. A
line is a name and its numbers; images are [images, height, width, channels] there.

    python3 make_resize.py

Made with torch 2.15.0 on a CPU. Inputs are those of check_numbers in tests/fixtures/check.h.
"""
import pathlib

from torch.nn.functional import interpolate

from check_numbers import numbers

lines = []
images = numbers(1, 1, 8, 7, 2).permute(0, 3, 1, 2)
SIZES = {"smaller": {"size": (3, 4)}, "larger": {"size": (13, 15)}, "both": {"size": (11, 2)}, "same": {"size": (8, 7)},
         "factor": {"scale_factor": (0.45, 1.3)}}
for mode in "bilinear", "bicubic":
    for antialias in False, True:
        for name, size in SIZES.items():
            y = interpolate(images, mode=mode, align_corners=False, antialias=antialias, **size)
            numbers_of_y = " ".join(f"{float(v):.9g}" for v in y.permute(0, 2, 3, 1).reshape(-1))
            lines.append(f"{mode}{'_antialias' if antialias else ''}_{name} {numbers_of_y}\n")
pathlib.Path(__file__).with_name("resize.txt").write_text("".join(lines))
