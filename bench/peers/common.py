"""What the measuring scripts share: where things are, how a program's JSON is read, how a table is printed."""
import csv
import json
import os
import pathlib
import re
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


class Refused(Exception):
    """What attend said to a shape that it cannot compute."""


class Attend:
    """`attend bench attention`, which is given one shape after the other: a dict of its fields."""

    def __init__(self, threads, **environment):
        self.command = [BUILD / "attend", "bench", "attention", "--shapes", "-", "--json", "--threads", str(threads)]
        self.environment, self.process = {**os.environ, **environment}, None

    def measure(self, **fields):
        if not self.process:  # the first one, or the one before was refused
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True, env=self.environment)
        try:
            self.process.stdin.write(json.dumps(fields) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        said = self.process.communicate()[1].strip()
        self.process = None
        raise Refused(re.sub(r"^attend: (-: line \d+: )?", "", said) or "attend ended without a word")

    def close(self):
        if self.process:
            self.process.communicate()
            self.process = None


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
