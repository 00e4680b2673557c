"""Where models are: a path, a model of attend's, or one of the Hugging Face Hub that is or can be downloaded."""
import os
import pathlib

from attend._attend import FileNotFound

_NOT_NEEDED = ["*.bin", "*.h5", "*.msgpack", "*.onnx", "*.ot", "openvino/*", "onnx/*"]


def _hub_cache():
    """The folder of huggingface_hub's cache, as that has it"""
    cache = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return pathlib.Path(os.path.expanduser(cache or os.path.join(home, "hub")))


def _cached(name, revision):
    """The snapshot of OWNER/NAME in the cache, or None"""
    folder = _hub_cache() / f"models--{name.replace('/', '--')}"
    reference = folder / "refs" / revision
    commit = reference.read_text().strip() if reference.is_file() else revision
    snapshot = folder / "snapshots" / commit
    return snapshot if (snapshot / "config.json").is_file() or (snapshot / "modules.json").is_file() else None


def find(name, *, revision="main", local_files_only=False):
    """The path of a model for the library: a path; a bare name is left to the library; OWNER/NAME of the Hub is looked
    for in its cache, then downloaded if huggingface_hub can be imported and local_files_only is not set."""
    text = os.fspath(name)
    if os.path.exists(text) and "/" in text:
        return os.path.abspath(text)  # also after a change of folder, and in other processes
    if text.count("/") != 1 or text.startswith(("/", ".", "~")):
        return text
    found = _cached(text, revision)
    if found:
        return str(found)
    try:
        if local_files_only:
            raise ImportError
        from huggingface_hub import snapshot_download
    except ImportError:
        raise FileNotFound(f"{text} is neither a folder nor in the cache of the Hugging Face Hub, {_hub_cache()}: "
                           f"hf download {text} puts it there (pip install huggingface_hub)") from None
    try:
        return snapshot_download(text, revision=revision, ignore_patterns=_NOT_NEEDED)
    except Exception as error:  # of many classes, by version
        raise FileNotFound(f"{text} is not in the cache of the Hugging Face Hub, {_hub_cache()}, and cannot be "
                           f"downloaded: {str(error).splitlines()[0]}") from error
