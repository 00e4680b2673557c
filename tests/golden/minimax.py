"""Prints the coefficients of src/simd/math.h and src/kernel/activation.h (numpy, scipy, mpmath; a minute).

Each is a polynomial nearest to its function in the weighted maximum norm, found by a linear program on Chebyshev
points, whose coefficients are rounded to float one after the other, the lowest power first, refitting the rest.
"""
import re

import mpmath as mp
import numpy as np
from scipy.optimize import linprog

mp.mp.dps = 40
POINTS = 700


def chebyshev(a, b):
    a, b = mp.mpf(a), mp.mpf(b)
    return [a + (b - a) * (1 - mp.cos(mp.pi * i / (POINTS - 1))) / 2 for i in range(POINTS)]


def nearest(columns, target):
    """c with the least max |target - columns c|; later passes fit what double precision left over."""
    size = abs(columns).max(axis=0)
    columns = columns / size
    c, rest, one = np.zeros(len(size)), target, np.ones((len(target), 1))
    for _ in range(3):
        unit = abs(rest).max()
        bounds = np.vstack([np.hstack([columns, -one]), np.hstack([-columns, -one])])
        lp = linprog([0] * len(size) + [1], bounds, np.concatenate([rest, -rest]) / unit,
                     bounds=[(None, None)] * len(size) + [(0, None)], method="highs")
        c = c + lp.x[:-1] * unit
        rest = target - columns @ c
    return c / size


def polynomial(f, powers, a, b, weight, fixed=()):
    """f(x) ~ sum c[k] x^k with float coefficients; fixed gives the first ones."""
    x = chebyshev(a, b)
    fx, w = [f(v) for v in x], np.array([float(weight(v)) for v in x])
    c = dict.fromkeys(powers, mp.mpf(0)) | dict(fixed)
    free = [k for k in powers if k not in dict(fixed)]

    def error():
        return np.array([float(v - sum(c[k] * u**k for k in c)) for u, v in zip(x, fx)]) * w

    while free:
        columns = np.array([[float(u) ** k for k in free] for u in x]) * w[:, None]
        for k, d in zip(free, nearest(columns, error())):
            c[k] += mp.mpf(float(d))
        k = free.pop(0)
        c[k] = mp.mpf(float(np.float32(float(c[k]))))
    return [c[k] for k in powers], abs(error()).max()


def rational(f, n, m, a, b, weight):
    """f(x) ~ A(x) / B(x), B(0) = 1: B by iterated linear programs, then A for the rounded B."""
    x = chebyshev(a, b)
    u, fx, w = (np.array([float(v) for v in s]) for s in (x, [f(v) for v in x], [weight(v) for v in x]))
    below, best = np.ones(POINTS), (np.inf, None)
    for _ in range(25):
        s = (w / below)[:, None]
        powers = u[:, None] ** np.arange(max(n, m) + 1)
        c = nearest(np.hstack([powers[:, : n + 1], -fx[:, None] * powers[:, 1 : m + 1]]) * s, fx * s[:, 0])
        bottom = np.append(1, c[n + 1 :])
        below = np.maximum(powers[:, : m + 1] @ bottom, 1e-3)
        error = abs((powers[:, : n + 1] @ c[: n + 1] / below - fx) * w).max()
        best = min(best, (error, tuple(bottom)))
    bottom = [mp.mpf(float(np.float32(v))) for v in best[1]]
    at = lambda v: sum(k * v**i for i, k in enumerate(bottom))
    top, error = polynomial(lambda v: f(v) * at(v), range(n + 1), a, b, lambda v: weight(v) / at(v))
    return top, bottom, error


def literal(v):
    return re.sub(r"\.?0*p\+?", "p", float(v).hex()) + "f"


def show(name, error, *lists):
    print(f"{name}: error {float(error):.2g}")
    for c in lists:
        print("    {" + ", ".join(literal(v) for v in c) + "}")


ln2 = mp.log(2)
log2_cdf = lambda t: mp.log(mp.erfc(t / mp.sqrt(2)) / 2) / ln2  # log2 Phi(-t)
slope = lambda t: (log2_cdf(t) + 1) / t if t else -mp.sqrt(2 / mp.pi) / ln2

c, e = polynomial(lambda x: mp.mpf(2) ** x, range(7), -0.5, 0.5, lambda x: mp.mpf(2) ** -x, {0: mp.mpf(1)}.items())
show("2^x, |x| <= 1/2, relative", e, c)
c, e = polynomial(lambda x: mp.mpf(2) ** x, range(7), 0, 1, lambda x: mp.mpf(2) ** -x, {0: mp.mpf(1)}.items())
show("2^x, 0 <= x <= 1, relative", e, c)
c, e = polynomial(lambda x: mp.mpf(2) ** x, range(4), 0, mp.mpf(1) / 16, lambda x: mp.mpf(2) ** -x, {0: mp.mpf(1)}.items())
show("2^x, 0 <= x <= 1/16, relative", e, c)
c, e = polynomial(mp.exp, range(7), -ln2 / 2, ln2 / 2, lambda x: mp.exp(-x), {0: mp.mpf(1), 1: mp.mpf(1)}.items())
show("e^x, |x| <= ln 2 / 2, relative", e, c)
log2_e = mp.mpf(float(np.float32(float(1 / ln2)))) # of log2 (1 + x); c[0] is what rounding took from it
log2 = lambda x: mp.log(1 + x) / ln2
c, e = polynomial(lambda x: log2(x) / x - log2_e if x else 1 / ln2 - log2_e, range(10), mp.sqrt(0.5) - 1, mp.sqrt(2) - 1,
                  lambda x: x / log2(x) if x else ln2)
show("log2(1 + x) / x - " + literal(log2_e) + ", relative to log2(1 + x) / x", e, c)
log = lambda x: mp.log(1 + x)
c, e = polynomial(lambda x: (log(x) - x) / x**2 if x else mp.mpf(-0.5), range(9), mp.sqrt(0.5) - 1, mp.sqrt(2) - 1,
                  lambda x: x**2 / log(x) if x else mp.mpf(0), {0: mp.mpf(-0.5)}.items())
show("(log(1 + x) - x) / x^2, relative to log(1 + x)", e, c)
c, e = polynomial(lambda x: mp.tanh(x) - x, range(3, 12, 2), 0, 0.625, lambda x: 1 / mp.tanh(x) if x else 0)
show("tanh x - x in x^2, x <= 5/8, relative to tanh", e, c)
c, e = polynomial(lambda x: mp.erf(x) - x, range(1, 12, 2), 0, 0.875, lambda x: 1 / mp.erf(x) if x else 0)
show("erf x - x in x^2, x <= 7/8, relative to erf", e, c)
c, e = polynomial(lambda x: mp.log(mp.erfc(x)) / ln2, range(7), 0.875, 4, lambda x: mp.erfc(x) * ln2)
show("log2 erfc x, 7/8 <= x <= 4, as error of erf", e, c)
top, bottom, e = rational(slope, 4, 3, 0, 12.9, lambda t: t / (1 + t**3))
show("(1 + log2 Phi(-t)) / t, t <= 12.9, times t / (1 + t^3)", e, top, bottom)
