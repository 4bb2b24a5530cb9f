"""A folder with the repository's configuration, for registers that a test writes."""

import pytest

from public_case import Register, write_isoflop, write_ladder


@pytest.fixture
def register(project_folder):
    """The study in a folder without any table."""
    return Register()


@pytest.fixture
def small(register):
    """The study with isoFLOP runs and a ladder."""
    return register.add("marin-v16", write_isoflop).add("marin-ladder", write_ladder)
