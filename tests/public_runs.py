"""Tables of runs that others published and that are not shipped: a test without them is skipped."""

import os
from pathlib import Path

import pytest


def public(name):
    """The table ``name`` in the folder that the environment variable MOELAWS_PUBLIC names."""
    path = Path(os.environ.get("MOELAWS_PUBLIC", ""), name)
    if "MOELAWS_PUBLIC" not in os.environ or not path.is_file():
        pytest.skip(f"MOELAWS_PUBLIC names no folder with {name}")
    return path
