"""Where the repository is, and how tests call its command line."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def moelaws(*words, cwd=REPOSITORY, **options):
    """The command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "moelaws.cli", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        **options,
    )
