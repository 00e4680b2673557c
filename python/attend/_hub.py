"""Where models are: a path, a model of attend's, or one of the Hugging Face Hub that is or can be downloaded. json and
pathlib, which take as long to import as all of attend, are imported where they are needed."""
import os
import warnings

from attend._attend import FileNotFound, find_model, find_snapshot

_NOT_NEEDED = ["*.bin", "*.h5", "*.msgpack", "*.onnx", "*.onnx_data", "*.ot", "*.pt", "*.pth", "*.ckpt", "*.tflite",
               "openvino/*", "onnx/*", "coreml/*", "original/*"]


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


def _download(name, options, missing):
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise FileNotFound(f"{missing} (pip install huggingface_hub)") from None
    try:
        return snapshot_download(name, ignore_patterns=_NOT_NEEDED, **options)
    except Exception as error:  # of many classes, by version
        raise FileNotFound(f"{missing}; it cannot be downloaded: "
                           f"{str(error).splitlines()[0] if str(error) else type(error).__name__}") from error


def _find_bare(name, at, cache, weights):
    """A name without owner: of attend's models, else of the Hub, where sentence-transformers is the owner if none is"""
    try:
        return os.path.abspath(find_model(name))
    except FileNotFound as error:
        for known in (f"sentence-transformers/{name}", name):
            try:
                return find_snapshot(known + at, cache, weights)
            except FileNotFound:
                pass
        raise FileNotFound(f"{error}; attend fetch {name} downloads it if it is among the models that attend fetch lists, "
                           f"of the Hugging Face Hub the owner is needed, too: attend fetch OWNER/{name} (or hf download OWNER/{name})") from None


def find(name, *, revision=None, local_files_only=False, cache_folder=None, token=None, weights=True):
    """The path of a model for the library: a path; a bare name; OWNER/NAME[@REVISION] of the Hub, which is looked for in
    its cache, then downloaded if huggingface_hub can be imported and local_files_only is not set. weights: whether they
    are needed."""
    text, at, cache = os.fspath(name), f"@{revision}" if revision else "", cache_folder or None
    if os.path.exists(text) and ("/" in text or os.path.isfile(text)):
        return os.path.abspath(text)  # also after a change of folder, and in other processes
    if text and "/" not in text:
        return _find_bare(text, at, cache, weights)
    if text.count("/") != 1 or text.startswith(("/", ".", "~")) or text.endswith(("/", ".gguf")):
        return find_model(text)  # says that it is not there
    try:
        return find_snapshot(text + at, cache, weights)
    except FileNotFound as missing:
        if local_files_only:
            raise FileNotFound(f"{missing}; local_files_only is set") from None
        name, _, in_name = text.partition("@")
        return _download(name, {"revision": revision or in_name or None, "cache_dir": cache, "token": token}, missing)
