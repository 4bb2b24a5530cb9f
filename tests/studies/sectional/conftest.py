"""Results of the sectional study's demo grid that a test chooses."""

import pytest

from sectional_case import Case


@pytest.fixture
def case(tmp_path):
    def make(**chosen):
        return Case(tmp_path / "results", **chosen)

    return make
