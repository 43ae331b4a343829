"""Images on disk, for ``surefoot attack``: an ``.npz`` file, or a folder of pictures. Nothing is unpickled.

>>> import tempfile
>>> file = Path(tempfile.mkdtemp()) / "some.npz"
>>> np.savez(file, images=np.full((2, 4, 4), 255, dtype=np.uint8), labels=[3, 5])
>>> pictures = read_images(file)
>>> float(pictures.images.max()), pictures.labels
(1.0, array([3, 5]))
"""

from __future__ import annotations

import csv
import hashlib
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import MissingExtra

__all__ = ["Pictures", "fingerprint", "read_images"]

Array = NDArray[np.float64]
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
LAYOUTS = ("NCHW", "NHWC")
CHANNELS = 4  # at most: gray, gray and alpha, RGB, RGBA
IMAGES, LABELS = ("images", "X", "x", "X_test"), ("labels", "y", "y_test")


@dataclass(frozen=True, eq=False)
class Pictures:
    """Images, how they are called, and their classes.

    Attributes
    ----------
    images : array of shape (n, H, W), (n, H, W, c) or, with ``first``, (n, c, H, W)
        Pixels in [0, 1].
    names : list of str
        One for each.
    labels : array of shape (n,), optional
        True classes.

    >>> Pictures(np.zeros((1, 2, 2, 3)), ["a"], None).channels_first().images.shape
    (1, 3, 2, 2)
    """

    images: Array
    names: list[str]
    labels: NDArray[Any] | None
    first: bool = False

    def channels_first(self) -> Pictures:
        """Return the images as (n, c, H, W)."""
        return replace(self, images=np.ascontiguousarray(np.moveaxis(self.images, -1, 1)), first=True)

    def shown(self, image: Array) -> Array:
        """Return one image as a picture, (H, W) or (H, W, 3)."""
        picture = np.moveaxis(image, 0, -1) if self.first and image.ndim == 3 else image
        return picture if picture.ndim == 2 or picture.shape[-1] == 3 else picture[..., 0]


def read_images(
    path: str | os.PathLike[str],
    labels: str | os.PathLike[str] | None = None,
    first: int | None = None,
    layout: str | None = None,
) -> Pictures:
    """Read images, and their classes where there are any.

    Parameters
    ----------
    path : path
        An ``.npz`` file with an array ``images`` (or ``X``), and maybe ``labels`` (or ``y``); or a folder of pictures,
        taken in the order of their names. Whole numbers are taken to go up to 255.
    labels : path, optional
        Text file with a class per line, or with ``name,class``.
    first : int, optional
        Only the first so many.
    layout : {"NCHW", "NHWC"}, optional
        Where the channels of the file's images are: after their number, or last. Needed only where the shape does not
        tell. Images are returned with their channels last.

    >>> read_images("nowhere.npz")
    Traceback (most recent call last):
    ...
    ValueError: there is no file or folder nowhere.npz
    """
    where = Path(path)
    if layout not in (None, *LAYOUTS):
        raise ValueError(f"the layout is {' or '.join(LAYOUTS)}, got {layout!r}")
    if first is not None and first < 1:
        raise ValueError(f"the number of images must be at least 1, got {first!r}")
    if where.is_dir():
        pictures = _folder(where)
    elif where.is_file():
        pictures = _archive(where, layout)
    else:
        raise ValueError(f"there is no file or folder {where}")
    if labels is not None:
        pictures = replace(pictures, labels=_labels(Path(labels), pictures.names))
    if first is not None:
        kept = None if pictures.labels is None else pictures.labels[:first]
        pictures = Pictures(pictures.images[:first], pictures.names[:first], kept)
    return pictures


def _archive(file: Path, layout: str | None) -> Pictures:
    if file.suffix != ".npz":
        raise ValueError(f"images are an .npz file or a folder of pictures, got {file}")
    try:
        with np.load(file, allow_pickle=False) as stored:
            found = {key: stored[key] for key in stored.files if key in (*IMAGES, *LABELS)}
            every = list(stored.files)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{file} cannot be read as an .npz file of plain arrays: {error}") from None
    images = next((found[key] for key in IMAGES if key in found), None)
    if images is None:
        raise ValueError(f"{file} needs an array called images (or X); it has {', '.join(every) or 'nothing'}")
    classes = next((found[key] for key in LABELS if key in found), None)
    if classes is not None and (classes.shape != images.shape[:1] or classes.dtype.kind not in "iu"):
        raise ValueError(f"{file}: labels are one whole number per image, got {classes.dtype} of shape {classes.shape}")
    return Pictures(_channels_last(_unit(images, file), file, layout), [str(i) for i in range(len(images))], classes)


def _unit(images: NDArray[Any], where: Path) -> Array:
    """Pixels in [0, 1]."""
    if images.ndim not in (3, 4) or not images.size:
        raise ValueError(f"{where}: images have shape (n, H, W), (n, H, W, c) or (n, c, H, W), got {images.shape}")
    if images.dtype.kind in "iub":
        pixels = images / (1.0 if images.dtype.kind == "b" else 255.0)
    elif images.dtype.kind == "f":
        pixels = images.astype(np.float64)
    else:
        raise ValueError(f"{where}: images must be numbers, got {images.dtype}")
    if not np.isfinite(pixels).all() or pixels.min() < 0.0 or pixels.max() > 1.0:
        raise ValueError(f"{where}: pixels must be whole numbers in 0..255 or lie in [0, 1]")
    return np.asarray(pixels, dtype=np.float64)


def _channels_last(images: Array, where: Path, layout: str | None) -> Array:
    """The images with their channels last; a shape that could mean both layouts is not guessed at."""
    if images.ndim == 3:
        return images
    found = {"NCHW": images.shape[1], "NHWC": images.shape[3]}
    possible = [name for name, channels in found.items() if channels <= CHANNELS and layout in (None, name)]
    if not possible:
        said = f"read as {layout}, {found[layout]}" if layout else f"{found['NCHW']} (NCHW) or {found['NHWC']} (NHWC)"
        raise ValueError(f"{where}: shape {images.shape} has {said} channels; images have at most {CHANNELS}")
    if len(possible) > 1:
        raise ValueError(f"{where}: shape {images.shape} can be read in two ways; say --layout NCHW or --layout NHWC")
    return np.ascontiguousarray(np.moveaxis(images, 1, -1)) if possible == ["NCHW"] else images


def _folder(folder: Path) -> Pictures:
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES)
    if not files:
        raise ValueError(f"there is no picture in {folder} ({', '.join(SUFFIXES)})")
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise MissingExtra("reading pictures needs Pillow: pip install 'surefoot[plot]'") from None
    stack = []
    for file in files:
        try:
            with Image.open(file) as image:
                gray = image.mode in ("1", "L", "I;16", "I", "F")
                stack.append(np.asarray(image.convert("L" if gray else "RGB")))
        except (OSError, UnidentifiedImageError, ValueError) as error:
            raise ValueError(f"{file} cannot be read as a picture: {error}") from None
        if stack[-1].shape != stack[0].shape:
            raise ValueError(f"{file} has shape {stack[-1].shape}, {files[0].name} has {stack[0].shape}: use one size")
    return Pictures(np.stack(stack) / 255.0, [file.name for file in files], None)


def _labels(file: Path, names: Sequence[str]) -> NDArray[Any]:
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    with file.open(newline="", encoding="utf-8-sig") as stream:
        rows = [[field.strip() for field in row] for row in csv.reader(stream) if row]
    texts: list[str]
    if rows and len(rows[0]) == 2:
        known = {row[0]: row[1] for row in rows if len(row) == 2}
        missing = [name for name in names if name not in known]
        if missing:
            raise ValueError(f"{file} has no class for {missing[0]} ({len(missing)} such images)")
        texts = [known[name] for name in names]
    else:
        texts = [row[0] for row in rows]
        if len(texts) != len(names):
            raise ValueError(f"{file} has {len(texts)} lines for {len(names)} images")
    for text in texts:
        if not text.isdigit():
            raise ValueError(f"{file}: a class is a whole number from 0 on, got {text!r}")
    return np.array([int(text) for text in texts])


def fingerprint(*arrays: NDArray[Any]) -> str:
    """Return the SHA-256 of the shapes, the types and the bytes of arrays.

    >>> fingerprint(np.zeros(2)) == fingerprint(np.zeros(2)), fingerprint(np.zeros(2)) == fingerprint(np.zeros(3))
    (True, False)
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype.str}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
