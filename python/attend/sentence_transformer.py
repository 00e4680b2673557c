"""SentenceTransformer: sentence embeddings with the names and defaults of the package sentence-transformers 6."""
import sys

from attend import _attend, _hub
from attend._accepted import only_cpu, only_none, stacked
from attend.attention import Attention
from attend.vectors import quantize_embeddings
from attend.tokenizer import Tokenizer


def _numpy():
    try:
        import numpy
    except ImportError:
        return None
    return numpy


class SentenceTransformer:
    """A folder of sentence-transformers, or an encoder. Paths, names of attend's models, and OWNER/NAME of the Hub."""

    def __init__(self, model_name_or_path, *, modules=None, device=None, prompts=None, default_prompt_name=None,
                 cache_folder=None, trust_remote_code=False, revision=None, local_files_only=False, token=None,
                 model_kwargs=None, processor_kwargs=None, config_kwargs=None, model_card_data=None, backend="torch",
                 similarity_fn_name=None, truncate_dim=None, dtype=None, compute=None):
        only_cpu(device)
        only_none(modules=modules, model_kwargs=model_kwargs, processor_kwargs=processor_kwargs,
                  config_kwargs=config_kwargs)
        similarity_fn_name = getattr(similarity_fn_name, "value", similarity_fn_name)  # of an enum
        self._path = _hub.find(model_name_or_path, revision=revision, local_files_only=local_files_only,
                               cache_folder=cache_folder, token=token)
        self._options = {"prompts": prompts, "default_prompt_name": default_prompt_name, "local_files_only": True,
                         "similarity_fn_name": similarity_fn_name, "truncate_dim": truncate_dim, "dtype": dtype,
                         "compute": compute}
        _hub.warn_without_modules(self._path)
        self._model = _attend.Sentence(self._path, dtype=dtype, compute=compute)
        self._tokenizer = None
        info = self._model.info
        self.prompts = {**info["prompts"], **(prompts or {})}
        self.default_prompt_name = default_prompt_name or info["default_prompt"]
        if self.default_prompt_name is not None:
            self._prompt(self.default_prompt_name, None)
        self.similarity_fn_name = similarity_fn_name or info["similarity"]
        self.truncate_dim = truncate_dim

    def __reduce__(self):
        return _reopen, (self._path, self._options)

    def __repr__(self):
        return f"attend.SentenceTransformer({self._path!r})"

    @property
    def tokenizer(self):
        if self._tokenizer is None:
            self._tokenizer = Tokenizer(self._path)
        return self._tokenizer

    @property
    def max_seq_length(self):
        return self._model.info["max_tokens"]

    def get_max_seq_length(self):
        return self.max_seq_length

    @property
    def device(self):
        return "cpu"

    def get_embedding_dimension(self):
        return self.truncate_dim or self._model.info["dim"]

    get_sentence_embedding_dimension = get_embedding_dimension  # its name until version 5

    def _prompt(self, name, text):
        """The prompt of a call: text, or that of a name"""
        if text is not None:
            return text
        name = name or self.default_prompt_name
        if name is None:
            return ""
        if name not in self.prompts:
            names = ", ".join(sorted(self.prompts)) or "none"
            raise _attend.ArgumentError(f"prompt_name: {name!r} is not a prompt of the model; there are: {names}")
        return self.prompts[name]

    def encode(self, inputs, prompt_name=None, prompt=None, batch_size=32, show_progress_bar=None,
               output_value="sentence_embedding", precision="float32", convert_to_numpy=True, convert_to_tensor=False,
               device=None, normalize_embeddings=False, truncate_dim=None, pool=None, chunk_size=None, *, out=None,
               nulls="error"):
        """Embeddings of a str, a sequence of str or an Arrow array of strings: [n, dim], or [dim] of one str. NumPy
        arrays where NumPy can be imported, else attend.Array; torch tensors if asked. batch_size and chunk_size change
        nothing: the library batches by itself, and results do not depend on it. nulls: whether a null of Arrow, or None,
        is an "error" or a row of "zero"s."""
        only_cpu(device)
        only_none(pool=pool)
        if precision != "float32" and out is not None:
            raise _attend.ArgumentError("out: holds float32, and precision is " + precision)
        if nulls not in ("error", "zero"):
            raise _attend.ArgumentError(f"nulls: {nulls!r}, must be 'error' or 'zero'")
        if output_value not in ("sentence_embedding", "token_embeddings"):
            raise _attend.ArgumentError(f"output_value: {output_value!r}, must be 'sentence_embedding' or "
                                        "'token_embeddings'")
        text, single = self._prompt(prompt_name, prompt), isinstance(inputs, str)
        converted = converter(convert_to_numpy, convert_to_tensor)
        if output_value == "token_embeddings":
            found = [converted(one) for one in self._model.encode_tokens(inputs, prompt=text)]
            return found[0] if single else found
        found = self._model.encode(inputs, prompt=text, dims=truncate_dim or self.truncate_dim or 0,
                                   normalize=normalize_embeddings, nulls_zero=nulls == "zero", out=out,
                                   progress=progress_bar("encode") if show_progress_bar else None)
        if precision != "float32":
            found = quantize_embeddings(found, precision)
        if out is not None:
            return out
        return converted(found[0] if single else found)

    def encode_query(self, inputs, prompt_name=None, prompt=None, *more, **options):
        """encode with the prompt "query" where the model has one"""
        return self.encode(inputs, prompt_name or self._named("query"), prompt, *more, **options)

    def encode_document(self, inputs, prompt_name=None, prompt=None, *more, **options):
        """encode with the prompt "document", "passage" or "corpus" where the model has one"""
        return self.encode(inputs, prompt_name or self._named("document", "passage", "corpus"), prompt, *more,
                           **options)

    def _named(self, *names):
        return next((name for name in names if name in self.prompts), None)

    def similarity(self, embeddings1, embeddings2):
        """[n, m]: of each row of the first with each of the second, by similarity_fn_name"""
        return _attend.similarity(stacked(embeddings1), stacked(embeddings2), self.similarity_fn_name)

    def similarity_pairwise(self, embeddings1, embeddings2):
        """[n]: of each row of the first with that row of the second"""
        return _attend.similarity(stacked(embeddings1), stacked(embeddings2), self.similarity_fn_name, True)

    def attention(self, text, layer=-1, head=None, *, prompt_name=None, prompt=None):
        """Attention weights of a layer, and of a head or the mean of all: an Attention, which a notebook draws"""
        weights, tokens = self._model.attention(text, layer, -1 if head is None else head,
                                                self._prompt(prompt_name, prompt))
        return Attention(weights, tokens)

    def tokenize(self, texts):
        """Lists of ids, special tokens included, truncated to max_seq_length"""
        return self.tokenizer.encode_batch(texts, max_tokens=self.max_seq_length)


def _reopen(path, options):
    return SentenceTransformer(path, **options)


def converter(to_numpy, to_tensor):
    """What makes the result of an attend.Array"""
    if to_tensor:
        import torch
        return torch.from_dlpack
    numpy = _numpy() if to_numpy else None
    return numpy.asarray if numpy else lambda a: a


def progress_bar(what):
    """Prints the share of the work to standard error, in a line that is written again and again"""
    def show(share):
        end = "\n" if share >= 1 else ""
        print(f"\r{what} {100 * share:3.0f} %", end=end, file=sys.stderr, flush=True)
    return show
