"""A program called nvidia-smi that lists what a test says, for machines without a GPU."""

from collections.abc import Sequence
from pathlib import Path


def nvidia_smi(folder: Path, lines: Sequence[str], last: str = "") -> None:
    """Writes the program to ``folder``; ``last`` is what its shell does after the listing."""
    folder.mkdir(exist_ok=True)
    told = "".join(f"echo '{line}'\n" for line in lines)
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{told}{last}\n")
    program.chmod(0o755)
