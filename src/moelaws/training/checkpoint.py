"""Checkpoints of an unfinished run: one safetensors file per process, and a JSON index.

No pickled code is read or written, and a checkpoint that may be damaged is refused. Each process
writes the rows that it holds of sharded tensors, and the first one writes all else. Then the index,
which names the files, replaces the one before. Any number of processes can read a checkpoint.
"""

import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from moelaws.files import seal
from moelaws.files.atomic import read_json, write_json
from moelaws.files.atomic import remove as remove_file
from moelaws.files.leftovers import sweep
from moelaws.records.tensors import write_tensors
from moelaws.spec.errors import UserError
from moelaws.training.ranks import ALONE, Ranks, place_of

FORMAT = 5
_TENSOR = "tensor"  # in the index, the key of a tensor's name


class Rows(NamedTuple):
    """The rows of a tensor that one process holds: from ``start`` on, of ``total`` in all."""

    here: Tensor
    start: int
    total: int


Shard = tuple[Path, int, int]  # a file with rows of a tensor, the first row, and how many


@dataclass(frozen=True)
class Stored:
    name: str  # its name in the files
    shards: list[Shard]  # its rows in order; a single shard of -1 rows is the whole tensor

    def whole(self) -> Tensor:
        """Returns the tensor, on the CPU."""
        if self.shards[0][2] < 0:
            return _read(self.shards[0][0], self.name)
        return self.rows(0, sum(count for _, _, count in self.shards))

    def rows(self, start: int, count: int) -> Tensor:
        """Returns ``count`` rows from ``start`` on, on the CPU."""
        if self.shards[0][2] < 0:
            return self.whole()[start : start + count]
        rows = [_read(self.shards[0][0], self.name, 0, 0)]
        for path, first, number in self.shards:
            low, high = max(start, first), min(start + count, first + number)
            if low < high:
                rows.append(_read(path, self.name, low - first, high - first))
        return torch.cat(rows)


def save(path: Path, identity: dict[str, str], state: Any, ranks: Ranks = ALONE) -> None:
    """Writes ``state`` (tensors, ``Rows`` and plain values) with its ``identity``.

    ``path`` is the index; the tensors go beside it. Raises UserError if they cannot be written,
    such as on a full disk; the checkpoint before is then kept.
    """
    tensors: dict[str, Rows] = {}
    plain = _plain(state, "", tensors, ranks)
    held = {name: rows.here.detach().contiguous() for name, rows in tensors.items()}
    starts = {name: f"{rows.start} {rows.total}" for name, rows in tensors.items()}
    # A random number, so that no other process, dead or alive, uses these names
    number = ranks.broadcast(secrets.randbits(62))
    trouble: UserError | None = None
    try:
        write_tensors(_file(path, number, ranks.rank), held, {seal.KEY: seal.BLANK, **starts})
    except UserError as error:
        trouble = error
    if ranks.maximum(trouble is not None):  # here or in another process, whose disk may be full
        raise trouble or UserError(f"{path}: cannot be written by another process of this run.")
    if ranks.is_first:
        index = {"format": FORMAT, "identity": identity, "state": plain}
        write_json(path, {**index, "files": number, "processes": ranks.size})
        _clear(path, number)


def load(path: Path, identity: Mapping[str, str], ranks: Ranks = ALONE) -> tuple[Any, str]:
    """Returns the state at ``path``, its tensors as ``Stored``, or None and why it is refused.

    The reason is empty if there is no checkpoint. ``identity`` says which run and data the state
    must be of. The caller must hold the run's lock: half-written files are removed.
    """
    if ranks.is_first:
        sweep(path.parent, locked=True)
    state, refused = _load(path, identity, ranks)
    if ranks.maximum(bool(refused)):  # each process has checked some of the files
        return None, refused or f"{path}: cannot be read by another process of this run"
    return state, ""


def _load(path: Path, identity: Mapping[str, str], ranks: Ranks) -> tuple[Any, str]:
    if not path.exists():
        return None, ""
    try:
        index = read_json(path)
        if index.get("format") != FORMAT:
            return None, f"{path}: of another version"
        for key, value in identity.items():
            if (found := index["identity"].get(key)) != value:
                return None, f"{path}: of another {key} ({found}, not {value})"
        files = [_file(path, index["files"], rank) for rank in range(index["processes"])]
        for file in files[ranks.rank :: ranks.size]:
            seal.check(file)
        return _restored(index["state"], _shards(files)), ""
    except (UserError, SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return None, f"{path}: cannot be read ({reason})"


def held(parameter: Tensor, values: Tensor, ranks: Ranks) -> Tensor | Rows:
    """Returns ``values``, placed like this process' rows of ``parameter``, for a state."""
    place = place_of(parameter, ranks)
    return values if place is None else Rows(values, *place)


def take(parameter: Tensor, values: Tensor, stored: Stored, ranks: Ranks) -> None:
    """Copies the stored rows to ``values``, placed like this process' rows of ``parameter``."""
    place = place_of(parameter, ranks)
    values.copy_(stored.whole() if place is None else stored.rows(place[0], len(values)))


def remove(path: Path) -> None:
    """Removes the checkpoint at ``path``, and its folder if that is empty then."""
    _clear(path)
    remove_file(path)


def _plain(state: Any, name: str, tensors: dict[str, Rows], ranks: Ranks) -> Any:
    """Returns ``state`` as JSON data with names for its tensors, and adds these to ``tensors``."""
    if isinstance(state, Tensor | Rows):
        if isinstance(state, Rows):
            tensors[name] = state
        elif ranks.is_first:
            tensors[name] = Rows(state, 0, -1)
        return {_TENSOR: name}
    if isinstance(state, Mapping):
        return {key: _plain(value, f"{name}/{key}", tensors, ranks) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return [_plain(value, f"{name}/{i}", tensors, ranks) for i, value in enumerate(state)]
    return state


def _restored(plain: Any, shards: Mapping[str, list[Shard]]) -> Any:
    if isinstance(plain, dict):
        if plain.keys() == {_TENSOR}:
            return Stored(plain[_TENSOR], shards[plain[_TENSOR]])
        return {key: _restored(value, shards) for key, value in plain.items()}
    if isinstance(plain, list):
        return [_restored(value, shards) for value in plain]
    return plain


def _shards(files: list[Path]) -> dict[str, list[Shard]]:
    """Returns the shards of each tensor, sorted by rows; raises UserError if rows are missing."""
    shards: dict[str, list[Shard]] = {}
    totals: dict[str, int] = {}
    for path in files:
        with safe_open(path, "pt") as file:
            about = file.metadata()
            for name in file.keys():  # noqa: SIM118
                start, totals[name] = map(int, about[name].split())
                shape = file.get_slice(name).get_shape()
                count = -1 if totals[name] < 0 else shape[0]
                shards.setdefault(name, []).append((path, start, count))
    for name, its_shards in shards.items():
        its_shards.sort(key=lambda shard: shard[1:])
        if totals[name] >= 0 and sum(count for *_, count in its_shards) != totals[name]:
            raise UserError(f"rows of {name} are missing")
    return shards


def _read(path: Path, name: str, start: int = 0, stop: int | None = None) -> Tensor:
    with safe_open(path, "pt") as file:
        if stop is None:
            tensor: Tensor = file.get_tensor(name)
        else:
            tensor = file.get_slice(name)[start:stop]
    return tensor


def _file(path: Path, number: int, rank: int) -> Path:
    return path.with_name(f"{number}.{rank}.safetensors")


def _clear(path: Path, number: int | None = None) -> None:
    """Removes the tensors beside the index at ``path``, except for those of ``number``."""
    for file in path.parent.glob("*.safetensors"):
        if re.fullmatch(r"\d+\.\d+", file.stem) and not file.stem.startswith(f"{number}."):
            with suppress(OSError):
                file.unlink()
