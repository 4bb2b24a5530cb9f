"""Simulated cases of the leverage study, each written once a session."""

from functools import cache

import pytest
from leverage_case import write_case


@pytest.fixture(scope="session")
def make_case(tmp_path_factory):
    """The case of a setting, written once a session."""
    return cache(lambda setting: write_case(tmp_path_factory.mktemp("case"), setting))
