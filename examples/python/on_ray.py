"""Vectors of sentences, classes of images, translations and lists of items by Ray Data. Each actor opens the model once; what an
actor had that was killed, another computes again, with the same bits.

    python3 on_ray.py sentences all-MiniLM-L6-v2 texts.parquet vectors
"""
import sys

import attend
import pyarrow
import ray


class Sentences:
    """A column "vector" beside "text": Arrow's strings are read in place, and become no strings of Python."""

    def __init__(self, model):
        self.model = attend.open(model)

    def __call__(self, table):
        return table.append_column("vector", pyarrow.array(self.model.encode(table["text"], convert_to_numpy=False)))


class Images(Sentences):
    """Columns "label" and "score" beside "bytes", those of image files, as ray.data.read_binary_files has them"""

    def __call__(self, table):
        best = [found[0] for found in self.model.classify(table["bytes"].to_pylist(), top_k=1)]
        table = table.append_column("label", pyarrow.array([one["label"] for one in best]))
        return table.append_column("score", pyarrow.array([one["score"] for one in best]))


class Translations(Sentences):
    """A column "translation" beside "text" """

    def __call__(self, table):
        return table.append_column("translation", pyarrow.array([str(text) for text in self.model.translate(table["text"])]))


class Lists(Sentences):
    """A column "items", of ten ids, beside "history", an array of ids, the oldest first"""

    def __call__(self, table):
        return table.append_column("items", pyarrow.array(self.model.recommend(table["history"].to_pylist(), k=10)[0]))


def computed(data, kind, model, actors=2):
    """The dataset with the columns that a class above adds. Reading needs a processor, too: at first there is one actor."""
    return data.map_batches(kind, fn_constructor_args=[model], batch_format="pyarrow", batch_size=64, num_cpus=1,
                            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=actors))


if __name__ == "__main__":
    what, model, source, target = sys.argv[1:]
    ray.init(runtime_env={"env_vars": {"ATTEND_THREADS": "1"}})
    data = ray.data.read_binary_files(source, include_paths=True) if what == "images" else ray.data.read_parquet(source)
    computed(data, globals()[what.capitalize()], model).write_parquet(target)
