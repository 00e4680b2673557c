"""Embeddings in fewer bits, and search, with the names of sentence_transformers.util."""
from attend import _attend
from attend._accepted import stacked

_SCORE_FUNCTIONS = {"cosine": True, "cos_sim": True, "dot": False, "dot_score": False}  # is it the cosine?


def quantize_embeddings(embeddings, precision, ranges=None, calibration_embeddings=None):
    """Codes [n, dim] of int8 or uint8, or bits [n, dim / 8] of binary or ubinary. int8 and uint8 have 256 steps of each
    dimension's range: `ranges` [2, dim], else that of calibration_embeddings, else that of the embeddings themselves."""
    if precision == "float32":
        return embeddings
    if precision in ("int8", "uint8") and ranges is None:
        ranges = _attend.ranges(embeddings if calibration_embeddings is None else calibration_embeddings)
    return _attend.quantize(embeddings, precision, ranges)


def semantic_search(query_embeddings, corpus_embeddings, query_chunk_size=100, corpus_chunk_size=500000, top_k=10,
                    score_function="cosine"):
    """Of each query the top_k nearest rows of the corpus: [[{"corpus_id": row, "score": similarity}, ...], ...].
    score_function: "cosine" or "dot", or cos_sim or dot_score of sentence_transformers.util. Chunk sizes change nothing."""
    name = getattr(score_function, "__name__", score_function)
    if name not in _SCORE_FUNCTIONS:
        raise _attend.ArgumentError(f"score_function: {name!r}, must be 'cosine' or 'dot'")
    found = _attend.search(stacked(query_embeddings), stacked(corpus_embeddings), top_k, _SCORE_FUNCTIONS[name])
    return [[{"corpus_id": row, "score": score} for row, score in hits] for hits in found]
