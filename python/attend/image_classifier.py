"""ImageClassifier: classes, embeddings and attention of images by a vision Transformer."""
from attend import _attend
from attend._images import as_buffer, in_chunks, listed
from attend._model import Model
from attend.attention import Attention


class ImageClassifier(Model):
    """A vision Transformer with its preprocessing: a folder of ViT, DeiT, DINOv2, or of timm; or its name"""

    _type = _attend.ImageModel

    def _opened(self):
        self._info = self._model.info
        self.labels = self._info["labels"]

    def __call__(self, images, top_k=5):
        return self.classify(images, top_k)

    def classify(self, images, top_k=5, *, progress=None):
        """The most probable classes of an image, [{"label": ..., "score": ...}], or of each of a sequence, as the
        pipeline "image-classification" of transformers gives them. An image is a path, the bytes of a file, an image of
        Pillow, or an array uint8 [height, width, 3]. top_k None: all classes"""
        images, single = listed(images)
        if top_k is not None and top_k < 1:
            raise _attend.ArgumentError(f"top_k: {top_k}, must be 1 or more, or None for all classes")
        found = [self._best(row, top_k) for row in self._rows(images, self._model.classify, progress)]
        return found[0] if single else found

    def predict(self, images, *, progress=None):
        """Probabilities [n, classes] of images, or [classes] of one: an array of NumPy if it is there"""
        return self._array(images, self._model.classify, len(self.labels), progress)

    def embed(self, images, *, progress=None):
        """Embeddings [n, dim] of images, or [dim] of one: what the classifier gets, not normalized"""
        return self._array(images, self._model.embed, self._info["dim"], progress)

    def attention(self, image, *, layer=-1, head=-1):
        """Weights [tokens, tokens] of a head, or with head -1 the mean of all: an ImageAttention"""
        return ImageAttention(*self._model.attention(as_buffer(image), layer, head))

    def _rows(self, images, call, progress):
        return in_chunks(images, lambda some, first: call(some, first).tolist(), progress)

    def _array(self, images, call, columns, progress):
        images, single = listed(images)
        arrays = in_chunks(images, lambda some, first: [call(some, first)], progress) or [call([], 0)]
        found = arrays[0] if len(arrays) == 1 else _joined(arrays, columns)
        found = found[0] if single else found
        try:
            return found.numpy()
        except ImportError:
            return found

    def _best(self, row, top_k):
        best = sorted(range(len(row)), key=lambda i: -row[i])[:top_k]
        return [{"label": self.labels[i], "score": row[i]} for i in best]


class ImageAttention(Attention):
    """weights [tokens, tokens]; tokens: those before the patches, then the patches by row and column; grid: rows and
    columns of patches"""

    def __init__(self, weights, rows, columns, prefix):
        before = ["[CLS]", *(f"[{i}]" for i in range(1, prefix))][:prefix]
        super().__init__(weights, before + [f"{r},{c}" for r in range(rows) for c in range(columns)])
        self.grid, self.prefix = (rows, columns), prefix

    def cls(self):
        """What [CLS] attends to: weights of the patches, lists [rows][columns]"""
        if not self.prefix:
            raise _attend.UnsupportedError("the model has no token [CLS]")
        row, columns = self.weights[0].tolist()[self.prefix:], self.grid[1]
        return [row[i:i + columns] for i in range(0, len(row), columns)]


def _joined(arrays, columns):
    """Rows of several arrays as one"""
    data = b"".join(bytes(memoryview(a)) for a in arrays)
    return _attend.array_of("float32", (sum(len(a) for a in arrays), columns), data)
