"""load_safetensors: the tensors of a file, in place."""
from attend import _attend


class Tensors(dict):
    """Arrays by name, in the order of the file; metadata has the texts of its header."""

    def __init__(self, tensors, metadata):
        super().__init__(tensors)
        self.metadata = metadata


def load_safetensors(path):
    """{name: Array} of a .safetensors file, which is checked completely and mapped into memory: arrays are read-only views,
    nothing is copied, unless a tensor does not begin at a multiple of its type's size. NumPy has no bfloat16 and no
    float8: torch.from_dlpack takes these."""
    file = _attend.Safetensors(path)
    return Tensors(((name, file.tensor(name)) for name in file.names()), file.metadata)
