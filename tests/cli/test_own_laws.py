"""A law of a user's own study is known to every command that is told of the study."""

import importlib
import shutil
import sys

import pytest

from command_line import printed
from moelaws.spec import references
from moelaws.spec.errors import UserError
from repository import REPOSITORY

STUDY = "study: own_study\ntitle: T\npackage: own_package\n"
LAW = """
from dataclasses import replace

from moelaws.laws.clark.dense import LAW as PUBLISHED

LAW = replace(PUBLISHED, id="own_package.data", title="Loss of a user's own")
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The file of a study whose package has a law ``data``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(references, "_joined", [])
    monkeypatch.setattr(sys, "path", [*sys.path])

    folder = tmp_path / "own_package/laws"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").write_text("")
    (folder / "data.py").write_text(LAW)
    (tmp_path / "own.yaml").write_text(STUDY)
    yield "own.yaml"
    for name in [name for name in sys.modules if name.startswith("own_package")]:
        del sys.modules[name]
    references.folder.cache_clear()
    importlib.invalidate_caches()


def test_fit_compare_eval_and_laws_know_it(own):
    shutil.copy(REPOSITORY / "docs/losses.csv", "runs.csv")
    with pytest.raises(UserError, match="unknown law"):
        printed("laws", "own_package.data")
    told = ("--study", own)
    assert "Loss of a user's own" in printed("laws", "own_package.data", *told)
    published = printed("eval", "clark.dense", "N=1e8")
    assert printed("eval", "own_package.data", "N=1e8", *told) == published
    options = ("--map", "N=params", "--map", "L=loss", "--bootstrap", "2", *told)
    assert "42 rows" in printed("fit", "runs.csv", "--law", "own_package.data", *options)
    compared = printed("compare", "runs.csv", "--laws", "own_package.data,clark.dense", *options)
    assert "own_package.data" in compared
