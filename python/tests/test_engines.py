"""examples/python/on_*.py: what Dask, Spark and Ray Data make of many files, while one of their processes is killed, has the bits
that one process makes. ./dev recipes installs the three."""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import attend

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/python"
PARTS, ROWS = 6, 20  # of each
# 2 processes at a time, 4 tries of a task
SPARK = ["--master", "local[2,4]", "--conf", "spark.executorEnv.ATTEND_THREADS=1", "--conf", "spark.ui.enabled=false",
         "--conf", "spark.log.level=ERROR", "--conf", "spark.sql.execution.arrow.maxRecordsPerBatch=15"]
IMAGES = sorted((ROOT / "models/fashion-mnist/examples").glob("*.png"))


def lines(kind):
    """Rows of input: texts, paths of images, or histories as texts"""
    if kind == "images":
        return [str(IMAGES[i % len(IMAGES)]) for i in range(PARTS * ROWS)]
    words = {"sentences": ["a", "b", "c", "metal", "in water", "ä"], "translations": ["Wo ist Gleis", "Der Zug", "Das Haus"],
             "lists": ["tent mat", "paint", "flour eggs", "stove gas bag"]}[kind]
    ids = ["brush", "tape", "tin", "gas", "roller"]
    return [f"{words[i % len(words)]} {ids[i % 5] if kind == 'lists' else i}" for i in range(PARTS * ROWS)]


@pytest.fixture(name="models", scope="module")
def fixture_models(tmp_path_factory):
    """Paths of a model of each kind"""
    shop = tmp_path_factory.mktemp("models") / "shop"
    actions = [(user, item, 10 * i) for user, *items in map(str.split, (ROOT / "examples/shop.txt").read_text().splitlines())
               for i, item in enumerate(items)]
    users, items, times = map(list, zip(*actions))
    attend.Recommender.fit({"user": users, "item": items, "time": times}, out=shop, arch="neighbors")
    return {"sentences": str(ROOT / "tests/golden/tiny_sentence"), "images": str(ROOT / "models/fashion-mnist"),
            "translations": str(ROOT / "models/tatoeba-de-en"), "lists": str(shop)}


def expected(kind, model, rows=None):
    """What one process makes of all rows, or the first ones: vectors, probabilities, translations or lists of ids"""
    opened, given = attend.open(model), lines(kind)[:rows]
    if kind == "sentences":
        return opened.encode(given).tolist()
    if kind == "images":
        return opened.predict(given).tolist()
    if kind == "translations":
        return [str(text) for text in opened.translate(given)]
    return opened.recommend([line.split() for line in given], k=10)[0]


def best(rows, model):
    """Of rows of probabilities the most probable class, and how probable it is"""
    labels = attend.open(model).labels
    return [(labels[row.index(max(row))], max(row)) for row in rows]


KINDS = ["sentences", "images", "translations", "lists"]


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_of_dask(kind, models, monkeypatch):
    bag = pytest.importorskip("dask.bag")
    monkeypatch.syspath_prepend(EXAMPLES)
    import on_dask
    data = bag.from_sequence(lines(kind)[:ROWS], npartitions=PARTS)
    found = data.map_partitions(getattr(on_dask, kind), models[kind]).compute(scheduler="threads")
    wanted = expected(kind, models[kind], ROWS)
    if kind == "images":
        found, wanted = [(one["label"], one["score"]) for one in found], best(wanted, models[kind])
    assert found == wanted


def run(command, folder):
    """Runs an example by Pythons; one is killed after some batches."""
    count = folder / "batches"
    paths = [ROOT / "python/tests/killed", pathlib.Path(attend.__file__).parents[1], *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "ATTEND_KILLED_ONCE": str(count), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
                   "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, check=False, cwd=folder,
                          env=environment)
    printed = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("\tat ")]  # a frame of Java
    assert done.returncode == 0, "\n".join(printed[-100:])
    killed = int(count.with_suffix(".pid").read_text())
    assert killed != os.getpid() and not os.path.exists(f"/proc/{killed}")
    return done


def write_tables(kind, folder):
    """Parquet files with a number and the input of each row; of images the files themselves"""
    folder.mkdir()
    if kind == "images":
        for i, path in enumerate(lines(kind)):
            shutil.copy(path, folder / f"{i:04}.png")
        return
    import pyarrow.parquet
    given = [line.split() for line in lines(kind)] if kind == "lists" else lines(kind)
    for part in range(PARTS):
        rows = range(part * ROWS, (part + 1) * ROWS)
        table = pyarrow.table({"row": list(rows), "history" if kind == "lists" else "text": [given[i] for i in rows]})
        pyarrow.parquet.write_table(table, folder / f"{part}.parquet")


def read_tables(kind, folder, column):
    """A column of the result, in the order of the input"""
    import pyarrow.parquet
    rows = [row for file in folder.glob("*.parquet") for row in pyarrow.parquet.read_table(file).to_pylist()]
    rows.sort(key=lambda row: row["path" if kind == "images" else "row"])
    return [tuple(row[name] for name in column) if isinstance(column, tuple) else row[column] for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_dask_with_a_killed_process(kind, models, tmp_path):
    pytest.importorskip("distributed")
    for part in range(PARTS):
        (tmp_path / f"{part}.txt").write_text("".join(f"{line}\n" for line in lines(kind)[part * ROWS:(part + 1) * ROWS]))
    run([sys.executable, EXAMPLES / "on_dask.py", kind, models[kind], "*.txt", "found-*.jsonl"], tmp_path)
    found = [json.loads(line) for part in range(PARTS) for line in (tmp_path / f"found-{part}.jsonl").read_text().splitlines()]
    wanted = expected(kind, models[kind])
    if kind == "images":
        found, wanted = [(one["label"], one["score"]) for one in found], best(wanted, models[kind])
    assert found == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_spark_with_a_killed_worker(kind, models, tmp_path):
    pytest.importorskip("pyspark")
    if not shutil.which("java"):
        pytest.skip("Spark needs java, which is missing")
    write_tables(kind, tmp_path / "given")
    submit = pathlib.Path(importlib.util.find_spec("pyspark").origin).parent / "bin/spark-submit"
    run([submit, *SPARK, EXAMPLES / "on_spark.py", kind, models[kind], "given", "found"], tmp_path)
    column = {"sentences": "vector", "images": "probabilities", "translations": "translation", "lists": "items"}[kind]
    assert read_tables(kind, tmp_path / "found", column) == expected(kind, models[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_ray_with_a_killed_actor(kind, models, tmp_path):
    pytest.importorskip("ray")
    write_tables(kind, tmp_path / "given")
    run([sys.executable, EXAMPLES / "on_ray.py", kind, models[kind], tmp_path / "given", tmp_path / "found"], tmp_path)
    column = {"sentences": "vector", "images": ("label", "score"), "translations": "translation", "lists": "items"}[kind]
    found, wanted = read_tables(kind, tmp_path / "found", column), expected(kind, models[kind])
    assert found == (best(wanted, models[kind]) if kind == "images" else wanted)
