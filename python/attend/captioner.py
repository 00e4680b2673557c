"""Captioner: captions of images, and what each word of one looked at."""
from attend import _attend
from attend._accepted import positive
from attend._images import as_buffer, in_chunks, listed
from attend._model import Model, ScoredText
from attend.attention import Attention


class Caption(ScoredText):
    """A caption, with the ids of its words and its score"""


class Captioner(Model):
    """A model that describes images: a folder that attend train captioner has written; or its name"""

    _type = _attend.Captioner

    def caption(self, images, *, beam_size=5, num_captions=1, max_length=None, length_penalty=1.0, progress=None):
        """A Caption of an image, or of each of a sequence; with num_captions above 1 lists of them, the best first. An image
        is a path, the bytes of a file, an image of Pillow, or an array uint8 [height, width, 3]. max_length: in words"""
        images, single = listed(images)
        for name, value in (("beam_size", beam_size), ("num_captions", num_captions), ("max_length", max_length)):
            positive(value, name)
        if num_captions > beam_size:
            raise _attend.ArgumentError(f"num_captions: {num_captions}, must be at most beam_size, {beam_size}")
        found = in_chunks(images, lambda some, first: self._model.caption(
            some, first, beam=beam_size, n_best=num_captions, max_words=max_length or 0, length_penalty=length_penalty), progress)
        found = [[Caption(*one) for one in captions] for captions in found]
        if num_captions == 1:
            found = [captions[0] for captions in found]
        return found[0] if single else found

    def attention(self, image, caption=None, *, layer=-1, head=-1):
        """What each word of a caption, or of the model's own, looked at: a CaptionAttention"""
        image = as_buffer(image)
        caption = self.caption(image) if caption is None else caption
        if not isinstance(caption, Caption):
            raise _attend.DtypeError("caption: one that caption() has made is needed, which has the ids of its words")
        return CaptionAttention(*self._model.attention(image, caption.ids, layer, head), self._model.words(caption.ids))


class CaptionAttention(Attention):
    """weights [words, locations]; queries: the words; grid: rows and columns of locations"""

    def __init__(self, weights, rows, columns, words):
        super().__init__(weights, [f"{r},{c}" for r in range(rows) for c in range(columns)], words)
        self.grid = rows, columns

    def word(self, i):
        """The weights of word i, lists [rows][columns]"""
        row, columns = self.weights[i].tolist(), self.grid[1]
        return [row[k:k + columns] for k in range(0, len(row), columns)]
