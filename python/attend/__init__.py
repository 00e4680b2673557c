"""Attention and Transformers in C, for Python: arrays in place, no dependency. NumPy and torch are used where they are."""
from attend._attend import (
    ArgumentError, Array, BusyError, CancelledError, DtypeError, Error, FileError, FileNotFound, FormatError,
    OutOfMemoryError, ShapeError, SystemCallError, UnsupportedError, __version__, attention_backward, config,
    find_model, scaled_dot_product_attention, set_threads, similarity,
)
from attend.attention import Attention
from attend.cross_encoder import CrossEncoder
from attend.generator import Generated, Generator
from attend.sentence_transformer import SentenceTransformer
from attend.tokenizer import Tokenizer
from attend.vectors import quantize_embeddings, semantic_search

__all__ = [
    "ArgumentError", "Array", "Attention", "BusyError", "CancelledError", "CrossEncoder", "DtypeError", "Error", "FileError", "FileNotFound",
    "FormatError", "Generated", "Generator", "OutOfMemoryError", "SentenceTransformer", "ShapeError", "SystemCallError", "Tokenizer",
    "UnsupportedError", "__version__", "attention_backward", "config", "find_model", "quantize_embeddings", "scaled_dot_product_attention", "semantic_search", "set_threads",
    "similarity",
]
