"""Results of the sectional study's demo grid that a test chooses."""

from __future__ import annotations

import pytest

from sectional_case import Case


@pytest.fixture
def case(tmp_path):
    def make(**chosen) -> Case:
        return Case(tmp_path / "results", **chosen)

    return make
