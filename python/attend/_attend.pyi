from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, Self, SupportsFloat, SupportsIndex, final

from typing_extensions import disjoint_base

__version__: str

class Error(Exception):
    status: str | None

class ArgumentError(Error, ValueError): ...
class ShapeError(Error, ValueError): ...
class DtypeError(Error, TypeError): ...
class OutOfMemoryError(Error, MemoryError): ...
class FileError(Error, OSError): ...
class FileNotFound(FileError, FileNotFoundError): ...
class FormatError(Error, ValueError): ...
class UnsupportedError(Error, ValueError): ...
class CancelledError(Error): ...
class SystemCallError(Error, OSError): ...
class BusyError(Error): ...

@final
class Array:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    def tolist(self) -> Any: ...
    def column(self, i: int, /) -> Array: ...
    def numpy(self) -> Any: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Array: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

@final
class Safetensors:
    def __new__(cls, path: str | PathLike[str]) -> Safetensors: ...
    @property
    def metadata(self) -> dict[str, str]: ...
    def names(self) -> list[str]: ...
    def tensor(self, name: str, /) -> Array: ...

@disjoint_base
class Stage:
    def __new__(
        cls,
        kind: int,
        name: str,
        functions: tuple[int, ...],
        flags: int,
        params: tuple[tuple[str, int, int, int, int, bool, bool], ...],
        user: Any,
        held: Any,
    ) -> Self: ...

@final
class Tokenizer:
    def __new__(cls, path: str | PathLike[str]) -> Tokenizer: ...
    def __len__(self) -> int: ...
    def encode(
        self,
        texts: Any,
        add_special_tokens: bool = True,
        max_tokens: int = 0,
        offsets: bool = False,
        target: bool = False,
    ) -> list[Any]: ...
    def decode(self, ids: Iterable[int], /) -> str: ...
    def token(self, id: int, /) -> str: ...
    def id(self, token: str, /) -> int | None: ...

@final
class Sentence:
    def __new__(cls, path: str | PathLike[str], *, dtype: str | None = None, compute: str | None = None) -> Sentence: ...
    @property
    def info(self) -> dict[str, Any]: ...
    def encode(
        self,
        texts: Any,
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        dims: int = 0,
        normalize: bool = False,
        nulls_zero: bool = False,
        out: Any = None,
        progress: Callable[[float], object] | None = None,
    ) -> Any: ...
    def encode_tokens(
        self, texts: Any, *, prompt: str | None = None, prompt_name: str | None = None
    ) -> list[Array]: ...

    def attention(
        self, text: str, layer: int = -1, head: int = -1, prompt: str | None = None
    ) -> tuple[Array, list[str]]: ...

@final
class Classifier:
    def __new__(cls, path: str | PathLike[str], *, dtype: str | None = None, compute: str | None = None) -> Classifier: ...
    @property
    def info(self) -> dict[str, Any]: ...
    def scores(
        self,
        texts: Any,
        pairs: Any = None,
        *,
        activation: str = "model",
        max_tokens: int = 0,
        progress: Callable[[float], object] | None = None,
    ) -> Array: ...

@final
class Generator:
    def __new__(cls, path: str | PathLike[str], *, dtype: str | None = None, compute: str | None = None) -> Generator: ...
    @property
    def chat_end(self) -> str: ...
    def tokenize(self, text: str, /) -> list[int]: ...
    def chat_ids(
        self,
        messages: Iterable[tuple[str, str, str | None]],
        tools: str | None,
        documents: str | None,
        variables: str | None,
        /,
    ) -> list[int]: ...

@final
class Session:
    def __new__(cls, generator: Generator, max_sequences: int = 0) -> Session: ...
    def add(
        self,
        ids: Iterable[int],
        *,
        max_new_tokens: int = 0,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        repetition_penalty: float | None = None,
        seed: int = 0,
        stop: Sequence[str] = ...,
        lookup: int = 0,
    ) -> int: ...
    def step(self) -> list[tuple[int, str, bool]]: ...
    def finish(self, number: int, /) -> tuple[str, list[int], str]: ...

@final
class Translator:
    def __new__(cls, path: str | PathLike[str], *, dtype: str | None = None, compute: str | None = None) -> Translator: ...
    @property
    def info(self) -> dict[str, Any]: ...
    def translate(
        self,
        texts: Any = None,
        *,
        ids: Iterable[Iterable[int]] | None = None,
        prefixes: Iterable[Iterable[int]] | None = None,
        beam: int = 0,
        n_best: int = 1,
        max_tokens: int = 0,
        min_tokens: int = 0,
        length_penalty: float | None = None,
        split: bool = False,
        scores: bool = True,
        progress: Callable[[float], object] | None = None,
    ) -> list[list[tuple[str, list[int], float | None]]]: ...
    def attention(self, ids: Iterable[int], target: Iterable[int], layer: int = -1, head: int = -1) -> Array: ...

@final
class Log:
    def __new__(
        cls,
        data: Any,
        names: tuple[str, ...],
        read: dict[str, Any],
        split: dict[str, Any],
        model: Recommender | None = None,
        items: Any = (),
        progress: Callable[[float], object] | None = None,
    ) -> Log: ...
    @property
    def info(self) -> dict[str, Any]: ...
    @property
    def histories(self) -> int: ...
    @property
    def valid_checksum(self) -> int: ...
    @property
    def integer_items(self) -> bool: ...
    def history(self, user: Any, /) -> list[str] | list[int]: ...
    def users(self) -> list[str] | list[int]: ...
    def items(self, first: int, /) -> list[str]: ...

@final
class Recommender:
    def __new__(cls, path: str | PathLike[str], *, dtype: str | None = None, compute: str | None = None) -> Recommender: ...
    @property
    def info(self) -> dict[str, Any]: ...
    def items(self, integers: bool, /) -> list[str] | list[int]: ...
    def recommend(
        self,
        histories: Iterable[Iterable[str | int]],
        options: dict[str, Any],
        *,
        allow: Iterable[str | int] | None = None,
        deny: Iterable[str | int] | None = None,
        skip_unknown: bool = False,
        progress: Callable[[float], object] | None = None,
    ) -> tuple[list[list[str]] | list[list[int]], Array]: ...
    def similar(
        self,
        items: Iterable[str | int],
        options: dict[str, Any],
        *,
        allow: Iterable[str | int] | None = None,
        deny: Iterable[str | int] | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> tuple[list[list[str]] | list[list[int]], Array]: ...
    def vectors(self) -> Array: ...
    def embed(
        self,
        histories: Iterable[Iterable[str | int]],
        skip_unknown: bool = False,
        progress: Callable[[float], object] | None = None,
        /,
    ) -> Array: ...
    def evaluate(self, log: Log, options: dict[str, Any], /) -> dict[str, Any]: ...

@final
class ImageSet:
    def __new__(cls, path: str | PathLike[str], test: bool, labels: tuple[str, ...]) -> ImageSet: ...
    @property
    def info(self) -> dict[str, Any]: ...
    def hold_out(self, share: float, seed: int, /) -> ImageSet: ...
    def group(self, pattern: str, /) -> int: ...

@final
class CaptionSet:
    def __new__(cls, path: str | PathLike[str], options: dict[str, Any]) -> CaptionSet: ...
    @property
    def info(self) -> dict[str, Any]: ...
    @property
    def paths(self) -> list[str]: ...

@final
class Training:
    def __new__(
        cls,
        kind: str,
        folder: str | PathLike[str],
        common: dict[str, Any],
        schedule: dict[str, Any],
        freeze: tuple[str, ...],
        options: dict[str, Any],
        data: Any,
    ) -> Training: ...
    @property
    def info(self) -> dict[str, Any]: ...
    @property
    def note(self) -> str: ...
    def step(self) -> dict[str, Any]: ...
    def save(self, note: str, /) -> None: ...
    def pause(self, note: str, /) -> None: ...
    def write(self, n: int, half: bool, /) -> None: ...
    def keep(self, n: int, /) -> None: ...
    def keep_best(self, score: float, half: bool, first: bool = False, /) -> None: ...
    def evaluate(self, options: dict[str, Any], /) -> dict[str, Any]: ...
    def close(self) -> None: ...

@final
class ImageModel:
    def __new__(cls, path: str | PathLike[str], *, dtype: str | None = None, compute: str | None = None) -> ImageModel: ...
    @property
    def info(self) -> dict[str, Any]: ...
    def classify(self, images: Iterable[Any], first: int = 0, /) -> Array: ...
    def embed(self, images: Iterable[Any], first: int = 0, /) -> Array: ...
    def attention(self, image: Any, layer: int = -1, head: int = -1) -> tuple[Array, int, int, int]: ...

@final
class Captioner:
    def __new__(cls, path: str | PathLike[str], *, dtype: str | None = None, compute: str | None = None) -> Captioner: ...
    @property
    def info(self) -> dict[str, Any]: ...
    def caption(
        self,
        images: Iterable[Any],
        first: int = 0,
        *,
        beam: int = 0,
        n_best: int = 1,
        max_words: int = 0,
        length_penalty: float = 1,
    ) -> list[list[tuple[str, list[int], float]]]: ...
    def attention(
        self, image: Any, ids: Iterable[int], layer: int = -1, head: int = -1
    ) -> tuple[Array, int, int]: ...
    def words(self, ids: Iterable[int], /) -> list[str]: ...

def set_threads(n: int, /) -> None: ...
def config() -> dict[str, Any]: ...
def array_of(dtype: str, shape: tuple[int, ...], bytes: bytes, /) -> Array: ...
def identify(path: str | PathLike[str], /) -> tuple[str, str, str]: ...
def recommender_fit(
    log: Log,
    settings: str,
    folder: str | PathLike[str],
    half: bool,
    progress: Callable[[float], object] | None,
    /,
) -> None: ...
def tool(arguments: Sequence[str], python: str, /) -> int: ...
def find_model(name: str | PathLike[str], /) -> str: ...
def find_snapshot(name: str, cache: str | PathLike[str] | None, weights: bool, /) -> str: ...
def torch_open(parallel: int, threads: int, /) -> None: ...
_Place = tuple[int, Any, Any] | None  # address, shape, strides

def torch_forward(
    threads: int, dtype: int, query: _Place, key: _Place, value: _Place, out: _Place, lse: _Place,
    bias: _Place, mask: _Place, lengths: _Place, seed: _Place, causal: bool, start: int, before: int,
    after: int, softcap: float, scale: float, dropout: float, /
) -> None: ...
def torch_backward(
    threads: int, dtype: int, query: _Place, key: _Place, value: _Place, out: _Place, lse: _Place,
    bias: _Place, mask: _Place, lengths: _Place, seed: _Place, causal: bool, start: int, before: int,
    after: int, softcap: float, scale: float, dropout: float, dout: _Place, dquery: _Place, dkey: _Place,
    dvalue: _Place, dbias: _Place, /
) -> None: ...
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: SupportsFloat | None = None,
    enable_gqa: bool = False,
    *,
    window: int | tuple[int, int] | None = None,
    alibi: Any = None,
    softcap: float | None = None,
    lengths: Sequence[SupportsIndex] | None = None,
    align: str | None = None,
    seed: int | None = None,
    score: str | Stage = "dot",
    score_params: Sequence[Any] | None = None,
    score_dim: int | None = None,
    stages: Sequence[tuple[Any, ...]] | None = None,
    out: Any = None,
    return_lse: bool = False,
) -> Any: ...
def attention_backward(
    dout: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    lse: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: SupportsFloat | None = None,
    enable_gqa: bool = False,
    *,
    window: int | tuple[int, int] | None = None,
    alibi: Any = None,
    softcap: float | None = None,
    lengths: Sequence[SupportsIndex] | None = None,
    align: str | None = None,
    seed: int | None = None,
    score: str | Stage = "dot",
    score_params: Sequence[Any] | None = None,
    score_dim: int | None = None,
    stages: Sequence[tuple[Any, ...]] | None = None,
) -> tuple[Any, Any, Any]: ...
def verify_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: SupportsFloat | None = None,
    enable_gqa: bool = False,
    *,
    window: int | tuple[int, int] | None = None,
    alibi: Any = None,
    softcap: float | None = None,
    lengths: Sequence[SupportsIndex] | None = None,
    align: str | None = None,
    seed: int | None = None,
    score: str | Stage = "dot",
    score_params: Sequence[Any] | None = None,
    score_dim: int | None = None,
    stages: Sequence[tuple[Any, ...]] | None = None,
) -> None: ...
def bleu(
    hypotheses: Any, references: Iterable[Any], tokenize: str = "13a", effective_order: bool = False, /
) -> dict[str, Any]: ...
def similarity(a: Any, b: Any, name: str = "cosine", pairwise: bool = False, /) -> Any: ...
def ranges(embeddings: Any, /) -> Any: ...
def quantize(embeddings: Any, precision: str, ranges: Any = None, /) -> Any: ...
def search(queries: Any, corpus: Any, k: int, cosine: bool, /) -> list[list[tuple[int, float]]]: ...
