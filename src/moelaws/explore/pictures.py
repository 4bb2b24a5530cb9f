"""Figures small enough to be embedded by the dozen."""

from __future__ import annotations

import base64
import io
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from moelaws.spec.errors import UserError

WIDEST = 900  # pixels
COLOURS = 64


def embedded(path: Path) -> str:
    """Returns the PNG at ``path`` as a data URI, at most ``WIDEST`` wide and in few colours.

    Raises:
        UserError: for a file that is no image.
    """
    try:
        with Image.open(path) as image:
            picture = image.convert("RGB")
    except (UnidentifiedImageError, OSError) as error:
        raise UserError(f"{path} is no image: {error}") from None
    if picture.width > WIDEST:
        height = max(1, round(picture.height * WIDEST / picture.width))
        picture = picture.resize((WIDEST, height), Image.Resampling.LANCZOS)
    # An octree finds its colours in half the time of a median cut, and lines keep theirs.
    few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    few.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
