"""Files of tensors (safetensors), written atomically, and which weights of a run are kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from moelaws.files import leftovers, seal
from moelaws.files.atomic import read_json, replacing
from moelaws.files.layout import KEPT, WEIGHTS
from moelaws.spec.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> None:
    """Writes contiguous ``tensors`` with ``about`` in the header, whose blank seal it fills."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file  # loads torch

    with replacing(path) as temporary:
        # The library first writes beside the file, under a name that does not say who owns it. It
        # gets a folder whose name does, so that what a killed process leaves is removed with that.
        folder = leftovers.temporary(path)
        try:
            folder.mkdir()
            file = folder / path.name
            file.touch()
            mode = file.stat().st_mode  # the user's default; the library would exclude others
            save_file(dict(tensors), file, dict(about))
            if seal.KEY in about:
                seal.apply(file)
            file.chmod(mode)
            file.replace(temporary)
        except OSError as error:
            raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
        except SafetensorError as error:  # the library's error for a full disk
            raise UserError(f"{path}: cannot be written; is the disk full? ({error})") from None
        finally:
            leftovers.discard(folder)


def file_of(step: int | None) -> str:
    """Returns the name of the file with the weights after ``step`` (None for the end)."""
    return WEIGHTS if step is None else f"step_{step}.safetensors"


def are_kept(folder: Path, run_id: str, steps: Collection[int] = ()) -> bool:
    """Returns whether the run's final weights exist, and those at ``steps``.

    Damaged ones raise DamagedError, because a training costs too much to be repeated unasked.
    """
    if not (folder / KEPT).is_file() or not set(steps) <= set(kept_steps(folder)):
        return False
    return all(is_whole(folder, run_id, step) for step in (*steps, None))


def is_whole(folder: Path, run_id: str, step: int | None) -> bool:
    """Returns whether the weights of the run after ``step`` exist, by their header."""
    from safetensors import SafetensorError, safe_open

    path = folder / file_of(step)
    if not path.is_file():
        return False
    seal.check(path)
    try:
        with safe_open(path, "np") as file:
            return bool((file.metadata() or {}).get("run_id") == run_id)
    except (SafetensorError, OSError):
        return False


def kept_steps(folder: Path) -> list[int]:
    """Returns the steps on the way whose weights a completed run kept, sorted."""
    return sorted(map(int, read_json(folder / KEPT).get("steps", [])))
