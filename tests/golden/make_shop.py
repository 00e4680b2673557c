#!/usr/bin/env python3
"""Writes examples/shop.txt, a made-up log of a shop: a line for each customer, and what was bought, oldest first.

A customer has two or three projects, one after the other, and buys for each what is needed in its order; now and then a
thing is there already, and now and then a bag is bought beside it. So a bag is the most popular item, but what comes
next is known from the items before it.
"""
import random
from pathlib import Path

PROJECTS = [["tent", "mat", "stove", "gas"], ["flour", "eggs", "butter", "tin"], ["paint", "brush", "roller", "tape"]]
CUSTOMERS = 150

draw = random.Random(7)
lines = []
for customer in range(1, CUSTOMERS + 1):
    bought = []
    for project in draw.sample(PROJECTS, draw.choice([2, 3])):
        for item in project:
            if draw.random() < 0.1:
                continue
            bought.append(item)
            if draw.random() < 0.2:
                bought.append("bag")
    lines.append(" ".join([f"c{customer}", *bought]))
Path(__file__).parent.parent.parent.joinpath("examples/shop.txt").write_text("\n".join(lines) + "\n")
