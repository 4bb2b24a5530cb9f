"""Packages that the tests of exports and of bundled tasks need, and that few people install."""

import os
from importlib import import_module

import pytest


def need(package, file):
    """Returns ``package``, or skips a test that it is missing for; ``file`` says how to install it.

    Where MOELAWS_EXPORTS is "required" the test fails instead.
    """
    try:
        return import_module(package)
    except ImportError:
        stop = pytest.fail if os.environ.get("MOELAWS_EXPORTS") == "required" else pytest.skip
        stop(f"{package} is not installed; how to run these: {file}")
