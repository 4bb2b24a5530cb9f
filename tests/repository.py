"""Where the repository is, and how tests call its command line."""

import io
import shutil
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import pytest

from moelaws.cli import main

REPOSITORY = Path(__file__).parents[1]


def copy_repository(root):
    """The files that git tracks or would, without what they made, copied to ``root``."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in listed:
        if (REPOSITORY / name).is_file() or (REPOSITORY / name).is_symlink():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, root / name, follow_symlinks=False)


def moelaws(*words, cwd=REPOSITORY, input="", together=False):
    """The command line as a shell hears it, in this process: exit code, output and errors."""
    out, code = io.BytesIO(), 0
    errors = out if together else io.BytesIO()
    with (
        chdir(cwd),
        redirect_stdout(io.TextIOWrapper(out, "utf-8", write_through=True)),
        redirect_stderr(io.TextIOWrapper(errors, "utf-8", write_through=True)),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("sys.argv", ["moelaws", *map(str, words)])
        patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(input.encode())))
        patch.setattr("sys.unraisablehook", sys.unraisablehook)
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        # A stream closes its bytes when it goes.
        stdout, stderr = (x.getvalue().decode() for x in (out, errors))
    return SimpleNamespace(returncode=code, stdout=stdout, stderr=stderr)
