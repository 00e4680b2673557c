"""Columns of data frames and arrays as _attend.Log reads them: in place, where that is possible."""
from attend import _attend


def _names(frame):
    """Names of a frame's columns, as the user would type them"""
    if hasattr(frame, "column_names"):  # pyarrow
        return list(frame.column_names)
    return list(frame.keys() if isinstance(frame, dict) else frame.columns)


def is_frame(data):
    """Has it named columns? pandas, polars, pyarrow, or a dict of arrays"""
    if type(data).__name__ == "LazyFrame":  # of polars
        raise _attend.DtypeError("data: a LazyFrame has no values yet; .collect() makes a frame of it")
    return isinstance(data, dict) or hasattr(data, "columns")


def of_frame(frame, user, item, time):
    """(users, items, times or None) of a frame, and their names in errors"""
    has = _names(frame)
    for option, name in (("user", user), ("item", item), ("time", time)):
        if name is not None and name not in has:
            more = "; time=None keeps the order of rows" if option == "time" else ""
            raise _attend.ArgumentError(f"{option}: the frame has no column {name!r}; it has "
                                        + ", ".join(map(repr, has)) + more)
        if name is not None and has.count(name) > 1:
            raise _attend.ArgumentError(f"{option}: the frame has {has.count(name)} columns {name!r}; one is needed")
    names = [name for name in (user, item, time)]
    return (tuple(None if name is None else column(frame[name]) for name in names),
            tuple("" if name is None else f"column {name!r}" for name in names))


def column(values):
    """A column or an array as it is, or as (numbers, unit) if it has NumPy's dates"""
    if type(values).__module__.partition(".")[0] == "pandas":
        values = _of_pandas(values)
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", None) == "M" and type(values).__module__ == "numpy":
        import numpy
        unit, count = numpy.datetime_data(dtype)
        if count != 1:
            raise _attend.UnsupportedError(f"times: dates in steps of {count} {unit}: .astype('datetime64[s]') makes "
                                           "seconds")
        return values.view("int64"), unit
    return values


def _of_pandas(values):
    """NumPy's array where the column has one, else what has Arrow's interface, else an array of objects"""
    dtype = values.dtype
    if getattr(dtype, "tz", None) is not None:
        return values.dt.tz_convert(None).to_numpy()
    if type(dtype).__module__.partition(".")[0] == "numpy":
        return values.to_numpy()
    texts = not hasattr(dtype, "categories") or dtype.categories.dtype.kind == "O"
    if texts and hasattr(values, "__arrow_c_stream__"):
        try:
            import pyarrow  # noqa: F401: by which pandas exports
            return values
        except ImportError:
            pass
    return values.to_numpy()
