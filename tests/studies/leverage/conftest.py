"""Simulated cases of the leverage study, each written once for the tests of a file."""

import pytest
from leverage_case import write_case


@pytest.fixture(scope="session")
def make_case(tmp_path_factory):
    """Returns a function that gives the case of a setting."""
    cases = {}

    def case_of(setting):
        if setting not in cases:
            cases[setting] = write_case(tmp_path_factory.mktemp("case"), setting)
        return cases[setting]

    return case_of
