"""Reads the tables of the package: facts that stand in a file beside the module that uses them."""

import tomllib
from pathlib import Path
from typing import Any


def table_beside(module: str) -> dict[str, Any]:
    """Returns the table ``NAME.toml`` beside the module whose ``__file__`` is ``module``."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))
