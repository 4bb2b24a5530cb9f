"""Cases are simulated, fitted and written once a session."""

from functools import cache

import pytest

from sparsity_case import simulate, write_case


@pytest.fixture(scope="session")
def make_case(tmp_path_factory):
    """The case of a setting, written once a session."""
    return cache(
        lambda setting: write_case(tmp_path_factory.mktemp("case"), simulate(setting), setting)
    )
