"""Where models are: a path, a model of attend's, or one of the Hugging Face Hub that is or can be downloaded. json and
pathlib, which take as long to import as all of attend, are imported where they are needed."""
import os
import warnings

from attend._attend import FileNotFound, find_model

_NOT_NEEDED = ["*.bin", "*.h5", "*.msgpack", "*.onnx", "*.onnx_data", "*.ot", "*.pt", "*.pth", "*.ckpt", "*.tflite",
               "openvino/*", "onnx/*", "coreml/*", "original/*"]


def hub_cache():
    """The folder of huggingface_hub's cache, as that has it"""
    cache = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return os.path.expandvars(os.path.expanduser(cache or os.path.join(home, "hub")))


def _is_whole(snapshot):
    """Does it have weights, all files of them? What was not downloaded is missing, or a link to nothing."""
    import json
    index = snapshot / "model.safetensors.index.json"
    if index.is_file():
        try:
            return all((snapshot / file).is_file() for file in set(json.loads(index.read_bytes())["weight_map"].values()))
        except (ValueError, LookupError, TypeError, AttributeError):
            return True  # the library says what is wrong with it
    return any(path.is_file() for pattern in ("*.safetensors", "*.gguf") for path in snapshot.glob(pattern))


def _cached(name, revision, cache, weights):
    """The snapshot of a name of the Hub in the cache, with all weights if these are needed, or None"""
    import pathlib
    folder = pathlib.Path(cache) / f"models--{name.replace('/', '--')}"
    reference = folder / "refs" / revision
    commit = reference.read_text("utf-8").strip() if reference.is_file() else revision
    snapshot = folder / "snapshots" / commit
    return snapshot if snapshot.is_dir() and (not weights or _is_whole(snapshot)) else None


def warn_without_modules(path):
    """Warns of a sentence model's snapshot of whose modules.json nobody knows whether it exists: transformers does not
    download it, and without it the mean of the tokens is the embedding."""
    if os.path.basename(os.path.dirname(path)) != "snapshots":
        return
    import pathlib
    path = pathlib.Path(path)
    if not path.parents[1].name.startswith("models--") or (path / "modules.json").is_file():
        return
    if not (path.parents[1] / ".no_exist" / path.name / "modules.json").exists():
        name = path.parents[1].name.removeprefix("models--").replace("--", "/")
        warnings.warn(f"{path} has no modules.json, which may not have been downloaded: the mean of the tokens is taken. "
                      f"hf download {name} gets it if there is one", stacklevel=3)


def _download(name, revision, cache, token):
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise FileNotFound(f"{name} is neither a folder nor in the cache of the Hugging Face Hub, {cache}: "
                           f"hf download {name} puts it there (pip install huggingface_hub)") from None
    try:
        return snapshot_download(name, revision=revision, cache_dir=cache, token=token, ignore_patterns=_NOT_NEEDED)
    except Exception as error:  # of many classes, by version
        raise FileNotFound(f"{name} is not in the cache of the Hugging Face Hub, {cache}, and cannot be "
                           f"downloaded: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from error


def _find_bare(name, revision, cache, weights):
    """A name without owner: of attend's models, else of the Hub, where sentence-transformers is the owner if none is"""
    try:
        return os.path.abspath(find_model(name))
    except FileNotFound as error:
        for known in (f"sentence-transformers/{name}", name):
            found = _cached(known, revision, cache, weights)
            if found:
                return str(found)
        raise FileNotFound(f"{error}; attend fetch {name} downloads it if it is among the models that attend fetch lists, "
                           f"of the Hugging Face Hub the owner is needed, too: hf download OWNER/{name}") from None


def find(name, *, revision=None, local_files_only=False, cache_folder=None, token=None, weights=True):
    """The path of a model for the library: a path; a bare name; OWNER/NAME of the Hub, which is looked for in its cache,
    then downloaded if huggingface_hub can be imported and local_files_only is not set. weights: whether they are needed."""
    text, revision = os.fspath(name), revision or "main"
    cache = os.fspath(cache_folder) if cache_folder else hub_cache()
    if os.path.exists(text) and ("/" in text or os.path.isfile(text)):
        return os.path.abspath(text)  # also after a change of folder, and in other processes
    if text and "/" not in text:
        return _find_bare(text, revision, cache, weights)
    if text.count("/") != 1 or text.startswith(("/", ".", "~")) or text.endswith(("/", ".gguf")):
        return find_model(text)  # says that it is not there
    found = _cached(text, revision, cache, weights)
    if found:
        return str(found)
    if local_files_only:
        raise FileNotFound(f"{text} is neither a folder nor in the cache of the Hugging Face Hub, {cache}, and "
                           f"local_files_only is set: hf download {text} puts it there")
    return _download(text, revision, cache, token)
