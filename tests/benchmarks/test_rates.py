"""The shipped rates of rules on simulated tables, and what would decide each claim."""

import importlib.util
import sys

import pandas as pd
import pytest
from scipy.stats import binom

from moelaws.spec.project import load_study
from repository import REPOSITORY

EVIDENCE = REPOSITORY / "docs/evidence"


def shipped(name):
    return pd.read_csv(EVIDENCE / f"{name}.csv", keep_default_na=False)


@pytest.mark.parametrize("name", ["nulls", "deciding"])
def test_a_page_shows_its_table(name, monkeypatch):
    spec = importlib.util.spec_from_file_location(
        f"of_{name}", REPOSITORY / f"benchmarks/{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # its data classes look themselves up
    spec.loader.exec_module(module)
    assert (EVIDENCE / f"{name}.md").read_text() == module.report(shipped(name))


def test_no_rule_supports_what_is_not_there_more_often_than_its_interval_says():
    """Of 200 tables 17: more have a chance of 1.2 % where 5 % support."""
    counts = shipped("nulls").query("tables == 'null'")
    assert len(counts) > 10
    n = counts[["supported", "not supported", "cannot tell at this scale"]].sum(axis=1)
    beyond = counts[counts["supported"] > binom.isf(0.0125, n, 0.05)]
    assert beyond.empty, beyond


@pytest.mark.parametrize("name", ["nulls", "deciding"])
def test_the_claims_of_a_table_are_the_studies(name):
    for study, claims in shipped(name).groupby("study")["claim"]:
        assert set(claims) <= {claim.name for claim in load_study(study, REPOSITORY).claims}
