"""The code that a sweep was made with: its commit, and what was changed since."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from moelaws.records.code import PACKAGE
from moelaws.spec.errors import UserError

# What may hold new files of a user's; texts, results and notes in the folder are no code.
_CODE = ("src", "config", "workflow", "profiles", "envs", "Snakefile")
# A user's settings of git may colour a patch, or leave out the a/ and b/ that ``git apply`` needs.
_PLAIN = (
    *("--binary", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)


@dataclass(frozen=True)
class Checkout:
    """The checkout that this package is imported from.

    Attributes:
        commit: 40 hex digits; None for a package that is in no checkout.
        patch: the changes since that commit, new files of code and configuration included, as
            ``git apply`` takes them; empty where there are none.
    """

    commit: str | None
    patch: bytes

    @classmethod
    def present(cls) -> Checkout:
        """Returns the state of the checkout at this moment.

        Raises:
            UserError: where git cannot tell the changes.
        """
        root = PACKAGE.parents[1]
        try:
            commit = _git(root, "rev-parse", "--verify", "HEAD").decode().strip()
            if Path(_git(root, "rev-parse", "--show-toplevel").decode().strip()) != root.resolve():
                return cls(None, b"")  # installed into somebody else's checkout
        except (OSError, subprocess.CalledProcessError):
            return cls(None, b"")
        try:
            return cls(commit, _patch(root))
        except subprocess.CalledProcessError as error:
            reason = error.stderr.decode(errors="replace").strip()
            raise UserError(f"{root}: git cannot tell what was changed: {reason}") from None


def _patch(root: Path) -> bytes:
    """The changes of the files in ``root``; its index stays as it is, for a copy serves."""
    index = root / _git(root, "rev-parse", "--git-path", "index").decode().strip()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "index"
        if index.exists():
            shutil.copy(index, copy)
        environment = {"GIT_INDEX_FILE": str(copy)}
        there = [name for name in _CODE if (root / name).exists()]
        _git(root, "add", "--intent-to-add", "--", *there, environment=environment)
        return _git(root, "diff", *_PLAIN, "HEAD", environment=environment)


def _git(root: Path, *words: str, environment: dict[str, str] | None = None) -> bytes:
    command = ["git", "-C", str(root), *words]
    variables = {**os.environ, **(environment or {})}
    return subprocess.check_output(command, stderr=subprocess.PIPE, env=variables)
