"""Verdicts come from rules and files, and the page says what they rest on."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.analysis.inputs import Inputs
from moelaws.claims import judge as judging
from moelaws.claims.base import (
    CANNOT_TELL,
    NOT_SUPPORTED,
    SUPPORTED,
    Claim,
    Finding,
    Verdict,
    by_interval,
)
from moelaws.claims.judge import claims_of, judge, page
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_study, study_names
from moelaws.spec.study import Study
from repository import REPOSITORY

STUDY = Study.model_validate(
    {
        "study": "toy",
        "title": "A toy",
        "figures": [{"id": "F1", "code": "x", "caption": "y"}],
        "claims": [{"id": "rises", "figure": "F1"}],
    }
)


def _measured(_inputs: Inputs) -> Finding:
    return Finding(by_interval(0.1, 0.3), "slope 0.2 (0.1 to 0.3), 5 runs", 0.2, 0.1, 0.3)


CLAIM = Claim(
    "it rises", "toy, sec 1", "supported where the slope's interval is above 0", _measured
)


@given(st.floats(allow_nan=True), st.floats(allow_nan=True), st.floats(-1e6, 1e6))
def test_an_interval_decides_only_as_a_whole(a, b, threshold):
    low, high = (min(a, b), max(a, b)) if a == a and b == b else (a, b)
    verdict = by_interval(low, high, threshold)
    if verdict is SUPPORTED:
        assert low > threshold
    elif verdict is NOT_SUPPORTED:
        assert high < threshold
    else:
        assert not low > threshold
        assert not high < threshold


def test_a_verdict_carries_its_rule_and_numbers(monkeypatch):
    monkeypatch.setattr(judging, "claims_of", lambda study: {"rises": CLAIM})
    found = judge(STUDY, Inputs(None))
    assert found["source"] == "computed"
    (claim,) = found["claims"]
    assert claim["verdict"] == "supported"
    assert (claim["value"], claim["low"], claim["high"]) == (0.2, 0.1, 0.3)
    text = page([found], "demo", {"toy": Path("figures/toy")})
    for words in (CLAIM.statement, CLAIM.rule, "slope 0.2 (0.1 to 0.3)", "figures/toy/F1.png"):
        assert words in text
    assert "| [toy](#toy) | 1 | 0 | 0 |" in text


def test_simulated_verdicts_say_so():
    found = {"study": "toy", "title": "A toy", "source": "simulated", "claims": []}
    text = page([found | {"assumed": "a dense curve"}], "paper", {"toy": Path()})
    assert "**From simulated data**" in text
    assert "Assumed: a dense curve" in text


def test_a_claim_without_a_rule_is_refused(monkeypatch):
    monkeypatch.setattr(judging, "claims_of", lambda study: {"falls": CLAIM})
    with pytest.raises(UserError, match="does not judge it; it judges falls"):
        judge(STUDY, Inputs(None))


@pytest.mark.parametrize("name", study_names(REPOSITORY))
def test_every_claim_of_a_study_states_what_decides_it(name):
    study = load_study(name, REPOSITORY)
    claims = claims_of(name)
    assert {entry.id for entry in study.claims} == set(claims)
    assert len(claims) >= 4
    for claim in claims.values():
        assert "supported" in claim.rule.lower()
        assert claim.statement[-1] == claim.rule[-1] == "."
        assert claim.source.startswith((name, "leverage"))


def test_verdicts_read_as_sentences():
    assert [str(v) for v in Verdict] == ["supported", "not supported", "cannot tell at this scale"]
    assert Finding(CANNOT_TELL, "one run").needed == ""
