"""Vectors of sentences, classes of images, translations and lists of items by Dask. Each process opens the model once; what a
process had that was killed, another computes again, with the same bits.

    python3 on_dask.py sentences all-MiniLM-L6-v2 'texts-*.txt' 'vectors-*.jsonl'
"""
import json
import sys

import attend
import dask.bag


def sentences(texts, model):
    """Vectors, lists of numbers, of the texts of a partition"""
    return attend.open_cached(model).encode(list(texts), convert_to_numpy=False).tolist()


def images(paths, model):
    """The most probable class of each image: {"label": ..., "score": ...}"""
    return [best[0] for best in attend.open_cached(model).classify(list(paths), top_k=1)]


def translations(texts, model):
    """A translation of each text"""
    return [str(text) for text in attend.open_cached(model).translate(list(texts))]


def lists(histories, model):
    """Ten items for each history, a line of ids, the oldest first"""
    return attend.open_cached(model).recommend([line.split() for line in histories], k=10)[0]


if __name__ == "__main__":
    from dask.distributed import Client, LocalCluster
    what, model, source, target = sys.argv[1:]
    with LocalCluster(processes=True, threads_per_worker=1, env={"ATTEND_THREADS": "1"}) as cluster, Client(cluster):
        lines = dask.bag.read_text(source).map(str.rstrip, "\n")  # a partition of each file
        lines.map_partitions(globals()[what], model).map(json.dumps).to_textfiles(target)
