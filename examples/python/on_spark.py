"""Vectors of sentences, classes of images, translations and lists of items by Spark. Each Python worker opens the model once;
what a worker had that was killed, another computes again, with the same bits.

    spark-submit --conf spark.executorEnv.ATTEND_THREADS=1 on_spark.py sentences all-MiniLM-L6-v2 texts.parquet vectors.parquet
"""
import sys

import attend
import numpy
import pyarrow
from pyspark.ml.functions import predict_batch_udf
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, FloatType, StringType


def by_batches(function, model, inputs, added):
    """What mapInArrow takes: a generator that adds a column `added`, function(model, column of inputs), to each batch"""
    def batches(given):
        opened = attend.open_cached(model)
        for batch in given:
            columns = [*batch.columns, pyarrow.array(function(opened, batch[inputs]))]
            yield pyarrow.RecordBatch.from_arrays(columns, names=[*batch.schema.names, added])
    return batches


def sentences(frame, model):
    """A column "vector" beside "text": Arrow's strings are read in place, and become no strings of Python."""
    def vectors(opened, texts):
        return pyarrow.array(opened.encode(texts, convert_to_numpy=False)).cast(pyarrow.list_(pyarrow.float32()))
    schema = f"{columns_of(frame)}, vector array<float>"
    return frame.mapInArrow(by_batches(vectors, model, "text", "vector"), schema)


def images(frame, model):
    """A column "probabilities" beside "content", the bytes of image files, as spark.read.format("binaryFile") has them"""
    def make():
        opened = attend.open_cached(model)
        return lambda files: opened.predict(list(files))
    return frame.withColumn("probabilities", predict_batch_udf(make, return_type=ArrayType(FloatType()), batch_size=64)("content"))


def translations(frame, model):
    """A column "translation" beside "text" """
    def make():
        opened = attend.open_cached(model)
        return lambda texts: numpy.array([str(text) for text in opened.translate(list(texts))], dtype=object)
    return frame.withColumn("translation", predict_batch_udf(make, return_type=StringType(), batch_size=256)("text"))


def lists(frame, model):
    """A column "items", of ten ids, beside "history", an array of ids, the oldest first"""
    def items(opened, histories):
        return opened.recommend(histories.to_pylist(), k=10)[0]
    return frame.mapInArrow(by_batches(items, model, "history", "items"), f"{columns_of(frame)}, items array<string>")


def columns_of(frame):
    """Names and types of a frame's columns, as Spark's schemas have them"""
    return ", ".join(f"`{name}` {kind}" for name, kind in frame.dtypes)


if __name__ == "__main__":
    what, model, source, target = sys.argv[1:]
    spark = SparkSession.builder.getOrCreate()
    given = spark.read.format("binaryFile").load(source) if what == "images" else spark.read.parquet(source)
    globals()[what](given, model).write.parquet(target)
