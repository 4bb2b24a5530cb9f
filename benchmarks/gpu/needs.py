"""What the parts need of a machine, and what of it can be carried to one without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

# Module -> the distribution that holds it.
NEEDED = {
    "torch": "torch", "numpy": "numpy", "pydantic": "pydantic", "yaml": "pyyaml",
    "pydantic_core": "pydantic-core", "annotated_types": "annotated-types",
    "typing_inspection": "typing-inspection", "typing_extensions": "typing-extensions",
    "pyarrow": "pyarrow", "tokenizers": "tokenizers", "safetensors": "safetensors",
    "pytest": "pytest", "hypothesis": "hypothesis",
}  # fmt: skip
# Those whose absence costs something that no part measures.
OPTIONAL = {
    "rich": "rich",  # bars in a terminal
    "datasets": "datasets",  # text by name, from a network
}
OLDEST_TORCH = (2, 11)


def missing() -> list[str]:
    """Returns the distributions that this Python lacks."""
    return [name for module, name in NEEDED.items() if find_spec(module) is None]


def install_carried(wheels: Path, site: Path) -> None:
    """Installs what ``wheels`` holds into ``site`` and puts that in front of the search path."""
    files = sorted(map(str, wheels.glob("*.whl")))
    newest = max((os.path.getmtime(file) for file in files), default=0.0)
    if files and (not site.exists() or site.stat().st_mtime < newest):
        shutil.rmtree(site, ignore_errors=True)
        words = ["--no-index", "--no-deps", "--quiet", "--target", str(site), *files]
        done = subprocess.run([sys.executable, "-m", "pip", "install", *words])
        if done.returncode:
            shutil.rmtree(site, ignore_errors=True)
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            raise SystemExit(
                f"{wheels} could not be installed into {site}: see pip's words above. Wheels for "
                f"this Python are made by `make gpu-wheels GPU_PYTHON={version}`."
            )
    if site.exists():
        sys.path.insert(0, str(site))
        invalidate_caches()


def check(device: str) -> None:
    """Raises SystemExit with what is missing and how it gets here."""
    if names := missing():
        raise SystemExit(
            f"missing here: {', '.join(names)}. Where there is a network, "
            f"`make gpu-wheels GPU_PACKAGES='{'|'.join(names)}'` adds them to the folder wheels/: "
            "carry it along, and it is installed by the next call."
        )
    import torch

    version = tuple(int(number) for number in torch.__version__.split(".")[:2])
    if version < OLDEST_TORCH:
        raise SystemExit(f"torch {torch.__version__} is too old: it must be 2.11 or later")
    if device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(
            "no GPU can be used here, and nothing was measured. `--device cpu --small` tries every "
            "part on the CPU; its numbers say nothing about speed."
        )
