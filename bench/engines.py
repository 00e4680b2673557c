#!/usr/bin/env python3
"""What Spark costs around attend: sentences a second of local[2] beside those of the tool with two threads, and of a Python worker
the seconds until it has a model and the memory.

    PYTHONPATH=build/python build/recipes-venv/bin/python bench/engines.py [--attend build/attend] [--model NAME] [--lines N]

One JSON line for the tool and for each dtype in Spark. Both read a file and write another; of Spark, the second of two equal jobs
is timed, when its workers have the model, and the tool with its start."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import attend
import pyarrow
import pyarrow.parquet

WORDS = "the a cat dog house sea old red small sleeps buys near under man woman with water metal wind sentence".split()

SETTINGS = {"spark.executorEnv.ATTEND_THREADS": "1", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR", "spark.sql.execution.arrow.maxRecordsPerBatch": "1000"}
# Of the process of a row, with Spark's types
FACTS = {"pid": "long", "before": "double", "after": "double", "peak": "double", "start": "double"}


def memory(field):
    """MB of this process, with the pages of files that it shares with others: VmRSS, now, or VmHWM, the most so far"""
    status = pathlib.Path("/proc/self/status").read_text(encoding="ascii")
    return round(int(status.split(field + ":")[1].split()[0]) / 1e3, 1)


def embedding(model, dtype):
    """What mapInArrow takes: vectors, with the process that made them, what it had in memory before, now and at most, and how long
    it took to open the model and to embed a word"""
    def batches(given):
        begin, before = time.perf_counter(), memory("VmRSS")
        opened = attend.open_cached(model, dtype={"f32": "float32"}.get(dtype, dtype))
        opened.encode("one")
        start = time.perf_counter() - begin
        for batch in given:
            vectors = pyarrow.array(opened.encode(batch["text"], convert_to_numpy=False)).cast(pyarrow.list_(pyarrow.float32()))
            facts = [[value] * len(batch) for value in (os.getpid(), before, memory("VmRSS"), memory("VmHWM"), start)]
            yield pyarrow.RecordBatch.from_arrays([vectors, *map(pyarrow.array, facts)], names=["vector", *FACTS])
    return batches


def in_spark(spark, given, folder, model, dtype):
    """A line of results for a dtype"""
    facts, schema = [], ", ".join(f"{name} {kind}" for name, kind in {"vector": "array<float>", **FACTS}.items())
    for job in range(2):
        begin = time.perf_counter()
        frame = spark.read.parquet(str(given)).mapInArrow(embedding(model, dtype), schema)
        frame.write.parquet(str(folder / f"{dtype}-{job}"))
        seconds = time.perf_counter() - begin
        facts.append(pyarrow.parquet.read_table(folder / f"{dtype}-{job}", columns=list(FACTS)).to_pylist())
    first = {row["pid"]: row for row in facts[0]}
    return {"in": "Spark local[2]", "dtype": dtype, "sentences_a_second": round(len(facts[1]) / seconds), "workers": len(first),
            "MB_before_the_model": max(row["before"] for row in first.values()),
            "MB_while_it_computes": max(row["after"] for row in facts[1]), "MB_at_most": max(row["peak"] for row in facts[1]),
            "seconds_to_open": round(max(row["start"] for row in first.values()), 2)}


def by_the_tool(tool, lines, folder, model, dtype):
    begin = time.perf_counter()
    subprocess.run([tool, "embed", "-m", model, "-t", "2", "--dtype", dtype, "-o", folder / f"{dtype}.npy", lines], check=True)
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attend", default="build/attend")
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--lines", type=int, default=20000)
    options = parser.parse_args()
    from pyspark.sql import SparkSession
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    texts = [" ".join(WORDS[(i * 7 + k * (i % 13 + 1)) % len(WORDS)] for k in range(3 + i % 20)) for i in range(options.lines)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "lines").write_text("\n".join(texts) + "\n", encoding="utf-8")
        (folder / "given").mkdir()
        for part in range(2):
            pyarrow.parquet.write_table(pyarrow.table({"text": texts[part::2]}), folder / f"given/{part}.parquet")
        for dtype in ("f32", "int8"):
            seconds = by_the_tool(options.attend, folder / "lines", folder, options.model, dtype)
            rate = round(options.lines / seconds)
            print(json.dumps({"in": "attend embed -t 2", "dtype": dtype, "sentences_a_second": rate}), flush=True)
            spark = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
            print(json.dumps(in_spark(spark, folder / "given", folder, options.model, dtype)), flush=True)
            spark.stop()  # other workers for the next dtype


if __name__ == "__main__":
    main()
