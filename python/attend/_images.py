"""Images of arguments: paths, bytes of files, images of Pillow, arrays uint8 [height, width, 3] or [n, height, width, 3]."""
import os

from attend import _attend

_AT_ONCE = 32  # images that are in memory at a time


def listed(images):
    """(list of images, whether the argument is one image)"""
    single = isinstance(images, (str, bytes, bytearray, os.PathLike)) or hasattr(images, "convert")
    if not single and hasattr(images, "ndim"):
        single = images.ndim < 4
    return [images] if single else list(images), single


def in_chunks(images, call, progress=None):
    """What call(images, number of the first), which returns a sequence, makes of all images"""
    found = []
    for first in range(0, len(images), _AT_ONCE):
        found.extend(call([as_buffer(image) for image in images[first:first + _AT_ONCE]], first))
        if progress is not None:
            progress(min(1.0, (first + _AT_ONCE) / len(images)))
    return found


def as_buffer(image):
    """An image that the library reads: Pillow's is turned upright, as its file states, and gets three channels."""
    if hasattr(image, "convert") and hasattr(image, "getexif"):
        from PIL import ImageOps
        upright = ImageOps.exif_transpose(image).convert("RGB")
        if 0 in upright.size:
            raise _attend.ShapeError(f"images: a Pillow image has {upright.width} x {upright.height} pixels")
        return memoryview(upright.tobytes()).cast("B", (upright.height, upright.width, 3))
    return image
