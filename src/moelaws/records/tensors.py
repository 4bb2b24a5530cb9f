"""Files of tensors (safetensors), written atomically, and which weights of a run are kept."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from moelaws.files import leftovers, seal
from moelaws.files.atomic import read_json, replacing
from moelaws.files.layout import KEPT, WEIGHTS
from moelaws.records.summary import Status
from moelaws.spec.base import Frozen, Whole, parse
from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json
from moelaws.spec.run import RunConfig

if TYPE_CHECKING:
    from torch import Tensor


class Kept(Frozen):
    """Which weights of a run are kept: how it ended, and the steps on the way, if it completed."""

    status: Status
    steps: tuple[Whole, ...] = ()


def write_tensors(path: Path, tensors: Mapping[str, "Tensor"], about: Mapping[str, str]) -> None:
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
    if not (folder / KEPT).is_file() or not set(steps) <= set(read_kept(folder).steps):
        return False
    return all(is_whole(folder, run_id, step) for step in (*steps, None))


def is_whole(folder: Path, run_id: str, step: int | None) -> bool:
    """Returns whether the weights of the run after ``step`` exist, by their header."""
    path = folder / file_of(step)
    if not path.is_file():
        return False
    seal.check(path)
    with suppress(UserError):
        return config_of(path).run_id == run_id
    return False


def config_of(path: Path) -> RunConfig:
    """Returns the run whose weights the file at ``path`` holds, by its header."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "np") as file:
            about: dict[str, str] = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise foreign(path, error) from None
    if "config" not in about:
        raise foreign(path, "its header has no configuration")
    config = parse(RunConfig, parse_json(about["config"], path), path)
    if (named := about.get("run_id")) != config.run_id:
        raise foreign(path, f"it names run {named}, and has the configuration of {config.run_id}")
    return config


def foreign(path: Path, reason: object) -> UserError:
    """Returns the error to raise for a file that holds no weights of a run."""
    return UserError(f"{path} does not hold the weights of a run: {' '.join(str(reason).split())}")


def read_kept(folder: Path) -> Kept:
    """Returns which weights are in ``folder``; raises UserError if nothing says it."""
    check_kept(folder / KEPT)
    return parse(Kept, read_json(folder / KEPT), folder / KEPT)


def check_kept(path: Path) -> None:
    """Raises UserError if a file of kept weights is missing."""
    if not path.is_file():
        raise UserError(
            f"{path} does not exist; weights are kept of the runs that a study's keep_weights "
            "selects, and by moelaws train --keep-weights"
        )
