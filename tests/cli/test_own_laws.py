"""A law of a user's own study is known to every command that is told of the study."""

import importlib
import sys

import numpy as np
import pandas as pd
import pytest

from command_line import printed
from moelaws.spec import references
from moelaws.spec.errors import UserError

STUDY = "study: own_study\ntitle: T\npackage: own_package\n"
LAW = """
from moelaws.laws.base import FitProtocol
from moelaws.laws.forms import power_law_sum
from moelaws.laws.terms import irreducible_loss, over, term
from moelaws.laws.vocabulary import variable

LAW = power_law_sum(
    id="own_package.data",
    title="Loss over tokens",
    source="nobody",
    terms=(
        term(
            "b", 9.0, "the data term",
            over(variable("D"), "beta", 0.3, bounds=(0.0, 3.0), starts=(0.1, 0.5)),
            starts=(0.0, 5.0),
        ),
        irreducible_loss("e", 1.5, starts=(0.0, 1.0)),
    ),
    protocol=FitProtocol(objective="huber"),
)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """``own(text)``: the file of a study whose package has a law ``data`` of this text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(references, "_joined", [])
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(text=LAW):
        folder = tmp_path / "own_package/laws"
        folder.mkdir(parents=True)
        for package in (folder, folder.parent):
            (package / "__init__.py").write_text("")
        (folder / "data.py").write_text(text)
        (tmp_path / "own.yaml").write_text(STUDY)
        return "own.yaml"

    yield write
    for name in [name for name in sys.modules if name.startswith("own_package")]:
        del sys.modules[name]
    references.folder.cache_clear()
    importlib.invalidate_caches()


def test_fit_compare_eval_and_laws_know_it(own, tmp_path):
    D = np.geomspace(1e7, 1e10, 20)
    pd.DataFrame({"N": 1e8, "D": D, "L": 9 / D**0.3 + 1.5}).to_csv("runs.csv", index=False)
    study = own()
    with pytest.raises(UserError, match="unknown law"):
        printed("laws", "own_package.data")
    told = ("--study", study)
    assert "b/D^beta" in printed("laws", "own_package.data", *told)
    assert printed("eval", "own_package.data", "D=1e9", *told).startswith("L = 1.51796")
    options = ("--bootstrap", "2", *told)
    assert "20 rows" in printed("fit", "runs.csv", "--law", "own_package.data", *options)
    compared = printed("compare", "runs.csv", "--laws", "own_package.data,chinchilla", *options)
    assert "own_package.data" in compared
