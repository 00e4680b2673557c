"""The numbers of check_numbers in tests/fixtures/check.h, for scripts that make golden files."""
import numpy
import torch


def numbers(seed, *shape, dtype=torch.float64):
    """splitmix64 of (seed, i), as numbers in [-1, 1): check_uniform"""
    with numpy.errstate(over="ignore"):
        i = numpy.arange(1, numpy.prod(shape) + 1, dtype=numpy.uint64)
        z = numpy.uint64(seed) * numpy.uint64(0xD1342543DE82EF95) + i * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    x = (z >> numpy.uint64(32)).astype(numpy.uint32).view(numpy.int32).astype(numpy.float32) * numpy.float32(2**-31)
    return torch.tensor(x.reshape(shape), dtype=dtype)
