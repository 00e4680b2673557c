"""What the measuring scripts share: where things are, how a program's JSON is read, how a table is printed."""
import csv
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
CACHE = BUILD / "peers"  # what is made once: exported models
MODEL = "all-MiniLM-L6-v2"
PAUSE = 0.2  # seconds between two sides, in which the threads of the first stop spinning


def model_folder():
    models = os.environ.get("ATTEND_MODELS")
    if not models:
        data = os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local/share"
        models = pathlib.Path(data) / "attend/models"
    folder = pathlib.Path(models) / MODEL
    if not folder.is_dir():
        sys.exit(f"{folder} is not there: ./dev demo fetches it")
    return folder


def sts():
    """STS-B dev: sentences a, sentences b, scores (1,500 each); None where the data is absent."""
    path = pathlib.Path(os.environ.get("ATTEND_DATA") or ROOT / "../shared/data") / "stsb/stsb-en-dev.csv"
    if not path.is_file():
        return None
    with open(path, encoding="utf-8", newline="") as f:
        a, b, score = zip(*csv.reader(f))
    return list(a), list(b), [float(s) for s in score]


def run_json(*command):
    """What a program of the build prints: a list, one object a line."""
    command = [str(c) for c in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line]


def best_time(f, seconds, least=3):
    """Calls f for so long, at least so often: the best time of a call."""
    best, n, end = float("inf"), 0, time.perf_counter() + seconds
    while n < least or time.perf_counter() < end:
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
        n += 1
    return best


def table(head, rows, markdown=False):
    """Lines of a table: the first column to the left, the others to the right."""
    cells = [head] + [[str(c) for c in row] for row in rows]
    width = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = [[c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, width))] for row in cells]
    if not markdown:
        return "\n".join("  ".join(line).rstrip() for line in lines)
    lines.insert(1, ["-" * w if i == 0 else "-" * (w - 1) + ":" for i, w in enumerate(width)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
