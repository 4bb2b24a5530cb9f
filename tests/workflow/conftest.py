"""Copies of the repository, as new and with everything made."""

import shutil

import pytest

from repository import REPOSITORY
from sweep_copy import Copy


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A copy in which everything was run once. Tests must leave it as they found it."""
    copy = Copy.of_repository(tmp_path_factory.mktemp("finished"))
    copy.first = copy.snakemake()
    return copy


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
