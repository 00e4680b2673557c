"""The notebook of the course: its cells run in order and print what is stored in it; no jupyter is needed."""
import contextlib
import io
import json
import pathlib

import pytest

pytest.importorskip("numpy")

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "examples/python/self_attention.ipynb"
CLOSE = 2e-4  # of numbers with four digits: another order of sums may round the last one differently


def same(printed, stored):
    """Are both texts equal, except that numbers may differ by CLOSE?"""
    a, b = printed.split(), stored.split()
    if len(a) != len(b) or printed.count("\n") != stored.count("\n"):
        return False
    for x, y in zip(a, b):
        try:
            if not abs(float(x.strip("[],")) - float(y.strip("[],"))) <= CLOSE and x != y:
                return False
        except ValueError:
            if x != y:
                return False
    return True


def test_cells_print_what_is_stored():
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5) and NOTEBOOK.stat().st_size < 60_000
    space, executed = {"__name__": "__main__"}, 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        executed += 1
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), cell["id"], "exec"), space)
        stored = "".join("".join(output["text"]) for output in cell["outputs"])
        assert same(printed.getvalue(), stored), f"{cell['id']} prints:\n{printed.getvalue()}but has stored:\n{stored}"
        assert cell["execution_count"] == executed
    assert executed > 10


def test_that_a_difference_is_found():
    assert same("a 0.1234\n", "a 0.1235\n") and not same("a 0.1234\n", "a 0.1334\n")
    assert not same("a\n", "b\n") and not same("a b\n", "a\nb\n") and not same("nan\n", "1.0\n")
