"""Where the repository is, and how tests call its command line."""

import shutil
import subprocess
import sys
from pathlib import Path

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


def moelaws(*words, cwd=REPOSITORY, **options):
    """The command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "moelaws", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        **options,
    )
