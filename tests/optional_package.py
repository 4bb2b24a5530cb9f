"""Packages that the tests of exports and of bundled tasks need, and that few people install."""

import os
from importlib.util import find_spec

import pytest


def need(package, file):
    """Skips a test that ``package`` is missing for; ``file`` says how to install it.

    Where MOELAWS_EXPORTS is "required" the test fails instead.

    Returns:
        The package's folder. It is not imported, for its own imports may not be installed.
    """
    spec = find_spec(package)
    if spec is None:
        stop = pytest.fail if os.environ.get("MOELAWS_EXPORTS") == "required" else pytest.skip
        stop(f"{package} is not installed; how to run these: {file}")
    return spec.submodule_search_locations[0]
