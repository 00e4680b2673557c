"""Embeddings in fewer bits, and search, with the names of sentence_transformers.util."""
from attend import _attend


def quantize_embeddings(embeddings, precision, ranges=None, calibration_embeddings=None):
    """Codes [n, dim] of int8 or uint8, or bits [n, dim / 8] of binary or ubinary. int8 and uint8 have 256 steps of each
    dimension's range: `ranges` [2, dim], else that of calibration_embeddings, else that of the embeddings themselves."""
    if precision == "float32":
        return embeddings
    if precision in ("int8", "uint8") and ranges is None:
        ranges = _attend.ranges(embeddings if calibration_embeddings is None else calibration_embeddings)
    return _attend.quantize(embeddings, precision, ranges)


def semantic_search(query_embeddings, corpus_embeddings, top_k=10, *, score_function="cosine"):
    """Of each query the top_k nearest rows of the corpus: [[{"corpus_id": row, "score": similarity}, ...], ...]"""
    if score_function not in ("cosine", "dot"):
        raise _attend.ArgumentError(f"score_function: {score_function!r}, must be 'cosine' or 'dot'")
    found = _attend.search(query_embeddings, corpus_embeddings, top_k, score_function == "cosine")
    return [[{"corpus_id": row, "score": score} for row, score in hits] for hits in found]
