"""A study's entries are refused before the first run is trained, not after the last."""

import subprocess
import sys

import pytest

from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit
from moelaws.spec.project import load_study
from moelaws.workflow.check import check_study
from repository import REPOSITORY

STUDY = load_study("sparsity", REPOSITORY)


def check(**fields):
    entry = {"name": "loss", "law": "sparsity.loss", "mapping": {"N": "N_total"}} | fields
    fits = (Fit(**entry), *(fit for fit in STUDY.fits if fit.name != "loss"))
    check_study(STUDY.model_copy(update={"fits": fits, "claims": ()}))  # which read its parameters


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"weights": "L_se", "resample_by": "run_id", "profile": ("alpha", "e")},
        # No study's table holds r_star: it follows from C and S.
        {
            "law": "allocation.loss:sqlog",
            "mapping": {"N": "N_total", "r": "G"},
            "rows": "r_star > 1",
        },
        {"units": {"D": "1"}},
    ],
)
def test_entries_that_can_be_fitted(fields):
    assert check(**fields) is None  # and raises nothing


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"law": "sectional.cost"}, "is a formula: it has nothing to fit"),
        ({"mapping": {"N": "context"}}, "column context is in tokens, and N in parameters"),
        ({"units": {"N": "percent"}}, "unit of N is 'percent'"),
        ({"resample_by": "budget"}, "'budget' is no column; there are run_id, "),
        ({"rows": "kind > 3"}, "kind has words, and no number such as 3.0"),
        ({"profile": ("alfa",)}, "profile: 'alfa' is no parameter of sparsity.loss; it has a, b"),
        ({"sweep": "deep"}, "sweep: no grid has a sweep 'deep'; there are none with a name"),
    ],
)
def test_entries_that_cannot(fields, message):
    with pytest.raises(UserError) as error:
        check(**fields)
    text = str(error.value)
    assert text.startswith("config/studies/sparsity.yaml: fit loss: ")
    assert message in text


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def draw(inputs): ...", ""),
        ("import nothing_of_that_name\n\ndef draw(inputs): ...", "nothing_of_that_name"),
        ("def paint(inputs): ...", "the module broken.figure has no draw"),
    ],
)
def test_code_that_cannot_be_imported_is_told(tmp_path, code, message):
    package = tmp_path / "broken"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "figure.py").write_text(code)
    study = tmp_path / "broken.yaml"
    entry = "{name: F1, caption: A figure., code: 'figure:draw'}"
    study.write_text(f"study: ours\ntitle: Ours\npackage: broken\nfigures:\n- {entry}\n")
    words = [sys.executable, "-m", "moelaws", "check", str(study)]
    ended = subprocess.run(words, capture_output=True, text=True, cwd=REPOSITORY)
    assert (ended.returncode == 0) == (not message)
    assert message in ended.stderr
