"""The origin of a run: code, commit, packages, hardware, time."""

import os
import platform
import socket
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from moelaws import __version__
from moelaws.records.code import PACKAGE, training_code

PACKAGES = ("torch", "numpy", "tokenizers", "megablocks", "triton", "pyarrow", "pydantic")

GPU_FRACTION = "MOELAWS_GPU_SHARE"  # environment variable with the fraction of a GPU for a training


def collect() -> dict[str, Any]:
    """Returns a JSON-ready record of this process' code and machine, at this moment."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "code": training_code(),
        "moelaws": __version__,
        **_git(),
        "python": platform.python_version(),
        "packages": {name: v for name in PACKAGES if (v := _version(name))},
        **machine(),
        # The GPUs that CUDA was allowed to see, such as one by its UUID, and the fraction taken.
        "cuda_visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "gpu_share": float(text) if (text := os.environ.get(GPU_FRACTION)) else None,
        "system": platform.platform(),
        "job": os.environ.get("SLURM_JOB_ID", ""),
    }


def machine() -> dict[str, Any]:
    """Returns what distinguishes this machine from machines of other speed."""
    return {"host": socket.gethostname(), "cpu": _cpu(), "cores": os.cpu_count()}


@cache
def _git() -> dict[str, Any]:
    """Returns the commit and dirty flag of the checkout that the package is imported from."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(PACKAGE), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    with suppress(OSError, subprocess.SubprocessError):
        top = Path(git("rev-parse", "--show-toplevel"))
        # A package installed into someone else's checkout has no commit of its own.
        if top in PACKAGE.parents and git("ls-files", "--", "__init__.py"):
            changes = git("status", "--porcelain", "--untracked-files=no", "--", ".")
            return {"commit": git("rev-parse", "HEAD"), "dirty": bool(changes)}
    return {"commit": None, "dirty": None}


@cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def _cpu() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
