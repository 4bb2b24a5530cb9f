"""The installed MegaBlocks package: what of it is there, and loading it.

Its Python and Triton code is used as it is. Where its compiled CUDA extensions are not built,
operations of torch stand in for them; on a CPU Triton's interpreter runs the kernels.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from moelaws.model.megablocks import stand_ins

# Extension -> the names that MegaBlocks' grouped layer uses of it.
EXTENSIONS: dict[str, dict[str, Any]] = {
    "megablocks_ops": {
        "sort": stand_ins.sort,
        "histogram": stand_ins.histogram,
        "inclusive_cumsum": stand_ins.inclusive_cumsum,
    },
    "grouped_gemm": {"ops": stand_ins, "backend": None},
}


def installed(module: str) -> bool:
    """Tells whether a module can be imported; a mere folder of its name is none."""
    spec = find_spec(module)
    return spec is not None and spec.origin is not None


def interpreted() -> bool:
    """Tells whether Triton's interpreter runs its kernels; it reads this when it is imported."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@cache
def load() -> None:
    """Imports the package; its modules ``megablocks.*`` can be imported from then on."""
    with _extensions():
        import_module("megablocks")
    if interpreted():
        _forgo_tuning()


@contextmanager
def _extensions() -> Iterator[None]:
    """Stand-ins in the place of missing extensions, only for as long as MegaBlocks imports them:
    others that ask for those modules must find that they are not there."""
    absent = [name for name in EXTENSIONS if not installed(name)]
    for name in absent:
        module = ModuleType(name)
        vars(module).update(EXTENSIONS[name])
        if name == "megablocks_ops" and "grouped_gemm" in absent:
            vars(module)["histogram"] = stand_ins.histogram_on_device
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def _forgo_tuning() -> None:
    """Leaves each kernel its first configuration: to choose among them is to time them on a GPU."""
    tuner = import_module("triton.runtime").Autotuner
    for kernel in vars(import_module("megablocks.backend.kernels")).values():
        if isinstance(kernel, tuner):
            kernel.configs = kernel.configs[:1]
