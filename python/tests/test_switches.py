"""The one-line switches of docs/PYTHON.md: each program prints what stands below it, and where the other package is, so does the
program with the line from before."""
import contextlib
import io
import pathlib
import re

import pytest

import attend

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTION = re.search(r"\n## One line to switch\n(.*?)\n## ", (ROOT / "docs/PYTHON.md").read_text(encoding="utf-8"), re.S)[1]
ROWS = re.findall(r"^\| (\S+) \| `([^`]*)` \| `([^`]*)` \|$", SECTION, re.M)
BLOCKS = re.findall(r"```python(?: torch)?\n(.*?)```\n\n```text\n(.*?)```\n", SECTION, re.S)
SWITCHES = [(package, before, after, *next(block for block in BLOCKS if after in block[0].splitlines())) for package, before, after in ROWS]
MODEL = "all-MiniLM-L6-v2"


def test_each_row_has_its_program():
    assert len(SWITCHES) == len(BLOCKS) == 5


def printed_by(program):
    """What a program prints in the root of the repository; MODEL is found where attend has it."""
    if f'"{MODEL}"' in program:
        try:
            program = program.replace(f'"{MODEL}"', repr(str(pathlib.Path(attend.find_model(MODEL)).resolve())))
        except FileNotFoundError:
            pytest.skip(f"attend fetch {MODEL} downloads it")
    printed = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(printed):
        exec(compile(program, "switch", "exec"), {"__name__": "__main__"})
    return printed.getvalue()


def ids(switch):
    return switch[0]


@pytest.mark.parametrize("switch", SWITCHES, ids=ids)
def test_with_attend(switch):
    package, _, _, program, output = switch
    for name in re.findall(r"^(?:import|from) (?!attend)(\w+)", program, re.M):
        pytest.importorskip(name)
    assert printed_by(program) == output, package


@pytest.mark.parametrize("switch", SWITCHES, ids=ids)
def test_with_the_other_package(switch, tmp_path):
    package, before, after, program, output = switch
    peer = pytest.importorskip(package.replace("-", "_").lower())
    lines = [before if line == after else line for line in program.splitlines()]
    if package == "CTranslate2":
        pytest.importorskip("sentencepiece")
        converters = pytest.importorskip("ctranslate2.converters")
        pytest.importorskip("transformers")
        converters.TransformersConverter(str(ROOT / "models/tatoeba-de-en")).convert(str(tmp_path / "model"))
        lines = ["import ctranslate2"] + [line.replace('"tatoeba-de-en-ct2"', repr(str(tmp_path / "model"))) for line in lines]
    assert printed_by("\n".join(lines)) == output and peer
