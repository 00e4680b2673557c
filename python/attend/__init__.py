"""Attention and Transformers in C, for Python: arrays in place, no dependency. NumPy and torch are used where they are."""
from attend._attend import (
    ArgumentError, Array, BusyError, CancelledError, DtypeError, Error, FileError, FileNotFound, FormatError,
    OutOfMemoryError, ShapeError, SystemCallError, UnsupportedError, __version__, attention_backward, config,
    find_model, scaled_dot_product_attention, set_threads, similarity, verify_attention,
)
from attend.any_model import open, open_cached
from attend.attention import Attention
from attend.captioner import Caption, Captioner
from attend.cross_encoder import CrossEncoder
from attend.generator import Generated, Generator
from attend.image_classifier import ImageClassifier
from attend.recommender import Recommender
from attend.metrics import corpus_score
from attend.sentence_transformer import SentenceTransformer
from attend.stages import Mask, Modifier, Param, Score, get_include
from attend.tokenizer import Tokenizer
from attend.translator import Translation, TranslationResult, Translator
from attend.vectors import quantize_embeddings, semantic_search
from attend.weights import load_safetensors
from attend import train

__all__ = [
    "__version__", "ArgumentError", "Array", "Attention", "attention_backward", "BusyError", "CancelledError",
    "Caption", "Captioner", "config", "corpus_score", "CrossEncoder", "DtypeError", "Error", "FileError", "FileNotFound",
    "find_model", "FormatError", "Generated", "Generator", "get_include", "ImageClassifier", "load_safetensors", "Mask", "Modifier", "open",
    "open_cached", "OutOfMemoryError", "Param", "quantize_embeddings", "Recommender", "scaled_dot_product_attention", "Score",
    "semantic_search", "SentenceTransformer", "set_threads", "ShapeError", "similarity", "SystemCallError", "Tokenizer", "train",
    "Translation", "TranslationResult", "Translator", "UnsupportedError", "verify_attention",
]
