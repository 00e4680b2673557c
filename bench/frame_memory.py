#!/usr/bin/env python3
"""How much memory attend.Recommender.fit takes beyond the data frame: bytes an action.

    PYTHONPATH=build/python bench/frame_memory.py [--actions N] [--users N] [--items N] [--steps N] [--frames KIND...]

Makes frames of N made-up actions, with ids that are texts or integers, in pandas and in polars, and in a process for each
fits a model that counts, and SASRec for some steps. One JSON line for each: by how many bytes the most memory that the
process had (VmHWM) exceeds what it had with the frame, of a hundredth of the actions and users and of all; and the
difference for each action, as the memory of steps depends on the model, not on the number of actions."""
import argparse
import ctypes
import itertools
import json
import subprocess
import sys
import tempfile

import attend


def status(name):
    """Bytes of a line of /proc/self/status"""
    with open("/proc/self/status") as f:
        return next(1024 * int(line.split()[1]) for line in f if line.startswith(name + ":"))


def frame(kind, ids, actions, users, items):
    import numpy
    rng = numpy.random.default_rng(1)
    user = rng.integers(0, users, actions)
    item = numpy.concatenate([numpy.arange(items), rng.zipf(1.3, actions - items) % items])
    columns = {"user": user, "item": item, "time": 1_600_000_000 + rng.permutation(actions)}
    if kind == "polars":
        import polars
        made = polars.DataFrame(columns)
        return made.with_columns(polars.format("user-{}", "user").alias("user"), polars.format("item-{}", "item").alias("item")
                                 ) if ids == "texts" else made
    import pandas
    made = pandas.DataFrame(columns)
    return made.assign(user="user-" + made["user"].astype(str), item="item-" + made["item"].astype(str)) if ids == "texts" else made


def measure(path, arch, steps):
    """The most bytes beyond a frame, which is read from a file, so that no memory of its making is there for reuse"""
    import numpy  # noqa: F401: loaded before it is measured
    if path.endswith(".parquet"):
        import polars
        data = polars.read_parquet(path)
    else:
        import pandas
        data = pandas.read_pickle(path)
    options = {"arch": arch} if arch == "popularity" else {"steps": steps, "validate_every": 10**6, "save_every": 10**6, "split": "none"}
    with tempfile.TemporaryDirectory() as folder:
        attend.Recommender.fit(data[:100], out=f"{folder}/small", arch="popularity")  # what the first call loads
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")  # the most is what there is now
        before = status("VmRSS")
        attend.Recommender.fit(data, out=f"{folder}/model", **options)
        return status("VmHWM") - before


def apart(*arguments):
    """A call of `make` or `measure` in a process of its own: what it prints"""
    run = subprocess.run([sys.executable, __file__, "--part", *map(str, arguments)], check=True, capture_output=True, text=True)
    return run.stdout


def make(path, kind, ids, actions, users, items):
    made = frame(kind, ids, actions, users, items)
    made.write_parquet(path) if kind == "polars" else made.to_pickle(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--actions", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, default=50_000)
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--frames", nargs="+", choices=("pandas", "polars"), default=("pandas", "polars"))
    parser.add_argument("--part", nargs="*", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.part:
        numbers = [int(word) if word.isdigit() else word for word in a.part]
        print(make(*numbers) if len(numbers) == 6 else measure(*numbers))
        return
    with tempfile.TemporaryDirectory() as folder:
        for kind, ids in itertools.product(a.frames, ("texts", "integers")):
            paths = [f"{folder}/{part}.{'parquet' if kind == 'polars' else 'pickle'}" for part in (1, 100)]
            for path, part in zip(paths, (1, 100)):
                apart(path, kind, ids, a.actions // part, a.users // part, a.items)
            for arch in ("popularity", "sasrec"):
                most, least = (int(apart(path, arch, a.steps)) for path in paths)
                print(json.dumps({"frame": kind, "ids": ids, "arch": arch, "actions": [a.actions // 100, a.actions],
                                  "mb": [round(least / 1e6, 1), round(most / 1e6, 1)],
                                  "bytes_an_action": round((most - least) / (a.actions * 0.99), 1)}), flush=True)


if __name__ == "__main__":
    main()
