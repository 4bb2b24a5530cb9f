"""The order of commits, which says what came first without any clock."""

import subprocess
from pathlib import Path
from typing import NamedTuple

from moelaws.spec.errors import UserError


class Added(NamedTuple):
    """The commit that added a file."""

    commit: str
    changes: int  # commits that changed the file since


def added(path: Path) -> Added | None:
    """Returns by which commit a file came; None if no commit has it."""
    commits = _git(path.parent, "log", "--format=%H", "--", path.name).stdout.split()
    return Added(commits[-1], len(commits) - 1) if commits else None


def descends(folder: Path, commit: str, ancestor: str) -> bool | None:
    """Returns whether ``ancestor`` came before ``commit``; None if one of them is not here."""
    code = _git(folder, "merge-base", "--is-ancestor", ancestor, commit).returncode
    return None if code > 1 else code == 0


def is_shallow(folder: Path) -> bool:
    """Returns whether the clone lacks the beginning of its history."""
    return _git(folder, "rev-parse", "--is-shallow-repository").stdout.strip() == "true"


def _git(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    try:
        command = ["git", "-C", str(folder), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise UserError(f"git says nothing of {folder}: {error}") from None
