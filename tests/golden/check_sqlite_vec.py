#!/usr/bin/env python3
"""Loads what attend writes for sqlite-vec into SQLite, and compares what both find.

    pip install sqlite-vec==0.1.9
    tests/golden/check_sqlite_vec.py build/attend all-MiniLM-L6-v2 examples/facts.txt

For each precision: the table is made, its rows are counted, the codes of bits are those of vec_quantize_binary, and the
ten nearest lines of some queries are compared with those of `attend search` on float32: for float32 they must be the
same, for the others the share that is found is printed.
"""
import json
import sqlite3
import subprocess
import sys
import tempfile

import sqlite_vec

QUERIES = ["Who was the first programmer?", "Why is the sky blue?", "What do bees make?", "How far is the moon?",
           "Which metal is liquid?", "Who wrote plays?", "How do plants get energy?", "What is the largest ocean?"]
attend, model, corpus = sys.argv[1:4]


def run(*arguments):
    return subprocess.run([attend, *arguments], check=True, capture_output=True, text=True).stdout


def vectors(*arguments):
    texts = [a for q in QUERIES for a in ("--text", q)]
    return [json.loads(line)["embedding"] for line in run("embed", "-m", model, *arguments, *texts).splitlines()]


search = run("search", "-m", model, "-c", corpus, "--json", *QUERIES)
exact = [[r["line"] for r in json.loads(line)["results"]] for line in search.splitlines()]
with tempfile.TemporaryDirectory() as folder:
    for precision in ["float32", "int8", "binary", "ubinary"]:
        path = f"{folder}/{precision}.sql"
        run("embed", "-m", model, "--format", "sqlite-vec", "--precision", precision, "-o", path, corpus)
        db = sqlite3.connect(":memory:")
        db.enable_load_extension(True)
        sqlite_vec.load(db)
        db.executescript(open(path).read())
        lines = open(corpus).read().splitlines()
        assert [t for t, in db.execute("SELECT text FROM embeddings ORDER BY rowid")] == lines
        make = {"float32": "vec_f32(?)", "int8": "vec_int8(?)"}.get(precision, "vec_quantize_binary(?)")
        ranges = ["--precision", "int8", "--ranges", f"{path}.ranges.npy"] if precision == "int8" else []
        found = total = 0
        for query, right in zip(vectors(*ranges), exact):
            rows = db.execute(f"SELECT rowid FROM embeddings WHERE embedding MATCH {make} AND k = 10 ORDER BY distance",
                              [json.dumps(query)])
            rows = [r for r, in rows]
            assert precision != "float32" or rows == right, (rows, right)
            found += len(set(rows) & set(right))
            total += len(right)
        if "binary" in precision:
            text = [json.loads(line)["embedding"] for line in run("embed", "-m", model, corpus).splitlines()]
            stored = [v for v, in db.execute("SELECT embedding FROM embeddings ORDER BY rowid")]
            for vector, bits in zip(text, stored):
                assert db.execute("SELECT vec_quantize_binary(?)", [json.dumps(vector)]).fetchone()[0] == bits
        print(f"{precision}: {len(lines)} rows, {found} of {total} nearest lines are those of float32")
