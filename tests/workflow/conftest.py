"""Copies of the repository for tests that change them."""

import shutil

import pytest

from repository import REPOSITORY
from sweep_copy import Copy


@pytest.fixture
def moved(finished, tmp_path):
    """The finished copy, copied again for a test that changes what was made."""
    return Copy(shutil.copytree(finished.root, tmp_path / "moved", symlinks=True))


@pytest.fixture
def root(monkeypatch):
    """Commands run from the repository's root."""
    monkeypatch.chdir(REPOSITORY)


@pytest.fixture
def fresh(tmp_path):
    """A copy in which nothing was run."""
    return Copy.of_repository(tmp_path)
