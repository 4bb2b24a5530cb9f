"""Verdicts follow from what a rule measures, and the page says what they rest on."""

from itertools import count

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.analysis.derive import derive
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Verdict, verdict
from moelaws.claims.judge import judge
from moelaws.claims.page import page
from moelaws.fitting.fit import fit
from moelaws.fitting.report import write_fit
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit
from moelaws.spec.project import load_study
from moelaws.spec.study import Study
from repository import REPOSITORY

CLAIM = {
    "name": "rises",
    "statement": "It rises.",
    "source": "toy, sec 1",
    "code": "claims:rises",
    "with": {"slope": 0.2},
    "rule": "Supported where the slope's interval is above 0.",
    "expect": {"above": 0},
    "needed": "More runs would decide.",
    "figure": "F1",
}
CODE = """
from moelaws.analysis.derive import table
from moelaws.analysis.effect import Effect
from moelaws.claims.base import Evidence
from moelaws.tables.column import Column


def rises(inputs, slope):
    return Evidence(f"slope {slope}, 5 runs", Effect(slope, slope - 0.1, slope + 0.1))


@table(Column("alpha", "float", "1", "exponent"))
def exponents(inputs):
    return [{"alpha": inputs.fit("losses").group({}).params["alpha"].estimate}]
"""
MAPPING = "{N: N, D: D, L: L}"
numbers = count()
intervals = st.tuples(st.floats(allow_nan=True), st.floats(allow_nan=True)).map(
    lambda ends: tuple(sorted(ends))
)


@pytest.fixture
def toy(tmp_path):
    """``toy(slope)``: a study of a user's own whose one claim measures ``slope``."""
    package = f"toy_{next(numbers)}"  # Python imports a package of one name once
    (tmp_path / package).mkdir()
    (tmp_path / package / "claims.py").write_text(CODE)
    path = tmp_path / "study.yaml"
    figure = '{name: F1, code: "figures:draw", caption: A picture.}'
    derived = '{name: exponents, code: "claims:exponents", fits: [losses]}'

    def load(slope: float, **changes: object) -> Study:
        claim = {**CLAIM, "with": {"slope": slope}, **changes}
        path.write_text(
            f"study: toy\npackage: {package}\ntitle: A toy\n"
            f"figures: [{figure}]\nclaims: [{claim!r}]\n"
            f"fits: [{{name: losses, law: chinchilla, mapping: {MAPPING}}}]\nderived: [{derived}]\n"
        )
        return load_study(str(path), REPOSITORY)

    return load


@given(st.lists(intervals, max_size=3), st.floats(-1e6, 0), st.floats(0, 1e6))
def test_a_verdict_takes_whole_intervals(ends, above, below):
    result = verdict(ends, above, below)
    if result is Verdict.SUPPORTED:
        assert ends
        assert all(above < low <= high < below for low, high in ends)
    if result is Verdict.NOT_SUPPORTED:
        assert any(high < above or low > below for low, high in ends)
    nan = float("nan")
    assert verdict([*ends, (nan, nan)], above, below) is not Verdict.SUPPORTED
    assert verdict([], above, below) is Verdict.CANNOT_TELL


@pytest.mark.parametrize(
    ("slope", "expected", "needed"),
    [
        (0.2, Verdict.SUPPORTED, ""),
        (-0.2, Verdict.NOT_SUPPORTED, ""),
        (0.05, Verdict.CANNOT_TELL, "More runs would decide."),
    ],
)
def test_a_verdict_carries_its_rule_and_numbers(toy, slope, expected, needed):
    judged = judge(toy(slope), Inputs(frame=None))
    assert judged["source"] == "computed"
    (claim,) = judged["claims"]
    assert (claim["verdict"], claim["needed"]) == (expected, needed)
    assert claim["value"] == slope
    text = page([judged], "demo")
    for words in (CLAIM["statement"], CLAIM["rule"], needed, "figures/toy/F1.png"):
        assert words in text


def test_texts_of_a_study_are_no_html_on_the_page(toy):
    (claim,) = judge(toy(0.2), Inputs(frame=None))["claims"]
    image = "<img src=x onerror=alert(1)>"
    claim |= {"statement": image, "rule": image, "measured": image, "needed": image}
    study = {"study": "toy", "title": image, "source": "imported", "runs": image, "assumed": image}
    text = page([study | {"claims": [claim]}], "demo")
    assert text.count("< img src=x") >= 7
    assert "<img" not in text


@pytest.mark.parametrize(("rows", "expected"), [(5, "cannot tell"), (6, "supported")])
@pytest.mark.parametrize("reads", ["fits", "derived"])
def test_as_many_parameters_as_rows_decide_nothing(toy, tmp_path, rows, expected, reads):
    """Whether a claim reads the fit itself or a table that was made of it."""
    law, rng = laws.fittable("chinchilla"), np.random.default_rng(0)
    sizes = {"N": np.geomspace(1e8, 1e9, rows), "D": rng.permutation(np.geomspace(1e9, 1e11, rows))}
    runs = pd.DataFrame({**sizes, "L": law.predict(law.published, sizes)})
    spec = Fit(name="losses", law=law.ref, mapping={}, bootstrap=5, protocol={"sample": 5})
    report, path = fit(law, runs, spec), tmp_path / "losses.json"
    write_fit(report, path)
    study = toy(0.2, **{reads: ["losses" if reads == "fits" else "exponents"]})
    made = {"exponents": tmp_path / "exponents.parquet"}
    inputs = FittedInputs(frame=None, fits={"losses": path}, derived_tables=made)
    derive(study, "exponents", inputs, made["exponents"])
    (claim,) = judge(study, inputs)["claims"]
    assert claim["verdict"].startswith(expected)
    assert (claim["low"] is None) == (rows == 5) == ("losses" in claim["measured"])
    (part,) = report.parts
    assert (part.params["alpha"].low is None) == (rows == 5)


def test_simulated_verdicts_say_so():
    judged = {"study": "toy", "title": "A toy", "source": "simulated", "runs": "", "claims": []}
    text = page([judged | {"assumed": "a dense curve"}], "paper")
    assert "**From simulated data**" in text
    assert "Assumed: a dense curve" in text


def test_a_claim_without_a_rule_is_refused(toy):
    with pytest.raises(UserError, match=r"claims:falls: the module toy_\d+.claims has no falls"):
        judge(toy(0.2, code="claims:falls"), Inputs(frame=None))
