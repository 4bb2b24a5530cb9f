"""Cases are simulated, fitted and written once a session; each of their figures is made once."""

from functools import cache

import pytest

from moelaws.figures.draw import make
from sparsity_case import simulate, write_case


@pytest.fixture(scope="session")
def make_case(tmp_path_factory):
    """The case of a setting, written once a session."""
    return cache(
        lambda setting: write_case(tmp_path_factory.mktemp("case"), simulate(setting), setting)
    )


@pytest.fixture(scope="session")
def make_sheet(make_case):
    """A figure of a setting's case, made once a session."""
    return cache(
        lambda setting, figure: make(make_case(setting).study, figure, make_case(setting).inputs)
    )
