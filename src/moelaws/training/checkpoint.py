"""Checkpoints of an unfinished run: one file, written atomically, refused rather than trusted."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import torch

from moelaws.records.files import replacing
from moelaws.records.leftovers import sweep
from moelaws.spec.errors import UserError

FORMAT = 3


def save(path: Path, identity: dict[str, str], state: dict[str, Any]) -> None:
    """Writes ``state`` (tensors and plain values) under ``identity``; the newest takes the place.

    Raises:
        UserError: where it cannot be written, such as for a full disk; the one before is kept.
    """
    with replacing(path) as temporary:
        try:
            torch.save({"format": FORMAT, "identity": identity, "state": state}, temporary)
        except RuntimeError as error:  # torch's word for a write that failed
            raise UserError(f"{path}: cannot be written; is the disk full?") from error


def load(path: Path, identity: dict[str, str]) -> tuple[dict[str, Any] | None, str]:
    """Returns the state at ``path`` on the CPU, or None and why it is refused ("" for no file).

    ``identity`` says what the state must be of: the run and its data. Half-written files of
    killed trainers are removed: the caller holds the run's lock, nobody else is writing.
    """
    sweep(path.parent, locked=True)
    if not path.exists():
        return None, ""
    try:
        # torch does not look at the archive's check sums.
        with zipfile.ZipFile(path) as archive:
            if (damaged := archive.testzip()) is not None:
                return None, f"{path}: damaged ({damaged})"
        # Never pickled code: a checkpoint is data.
        content = torch.load(path, map_location="cpu", weights_only=True)
        saved_identity = content["identity"] if content["format"] == FORMAT else None
    except Exception as error:  # torch raises what the broken byte happens to break
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return None, f"{path}: cannot be read ({reason})"
    if saved_identity is None:
        return None, f"{path}: of another version"
    for key, value in identity.items():
        if saved_identity.get(key) != value:
            return None, f"{path}: of another {key} ({saved_identity.get(key)}, not {value})"
    return content["state"], ""
