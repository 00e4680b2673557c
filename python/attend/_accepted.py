"""Arguments of other packages: those that attend takes, and those of which only one value has a meaning here."""
from attend import _attend


def only_cpu(device):
    """Refuses a device, a name or a list, that is not the CPU."""
    for one in device if isinstance(device, (list, tuple)) else [device]:
        if one is not None and str(one) != "cpu":
            raise _attend.ArgumentError(f"device: {str(one)!r}, attend computes on the CPU")


def only_none(**given):
    """Refuses what attend does not have, unless it is None or empty."""
    for name, value in given.items():
        if value is not None and value != {}:
            raise _attend.ArgumentError(f"{name}: attend does not have it; leave it out")


def positive(value, name):
    """A number above 0, or 0 of None"""
    if value is not None and value < 1:
        raise _attend.ArgumentError(f"{name}: {value}, must be 1 or more")
    return value or 0


def stacked(rows):
    """A list of vectors as one array; anything else as it is"""
    if not isinstance(rows, (list, tuple)):
        return rows
    import numpy
    return numpy.stack([numpy.asarray(row) for row in rows])


def scalar(number):
    """A float of an array without dimensions, which NumPy's arrays make of themselves"""
    return number.tolist() if isinstance(number, _attend.Array) and number.ndim == 0 else number


def only_defaults(function, given, only, no_effect):
    """Refuses arguments of which only one value has a meaning here, and names that the package does not have."""
    for name, value in given.items():
        if name in no_effect:
            continue
        if name not in only:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
        if value != only[name]:
            raise _attend.ArgumentError(f"{name}: {value!r}, attend does not have it; leave it out, or give {only[name]!r}")
