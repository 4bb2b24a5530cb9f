"""Cases are simulated, fitted and written once a session."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sparsity_case import Case, Setting, simulate, write_case


@pytest.fixture(scope="session")
def make_case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Setting], Case]:
    """A case of a setting, written once a session."""
    cases: dict[Setting, Case] = {}

    def make(setting: Setting) -> Case:
        if setting not in cases:
            root = tmp_path_factory.mktemp("case")
            cases[setting] = write_case(root, simulate(setting), setting)
        return cases[setting]

    return make
