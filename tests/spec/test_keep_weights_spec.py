"""keep_weights of a study: a short form, steps by number or share, and the tiers that keep them."""

import pytest

from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.kept_weights import KeptWeights
from moelaws.spec.project import load_study
from moelaws.spec.study import Study
from moelaws.workflow.check import check_study
from repository import REPOSITORY


def study(**keys):
    return parse(Study, {"study": "own", "title": "t", **keys}, "own.yaml")


def test_a_bare_expression_is_the_rows():
    assert study(keep_weights="C >= 1").keep_weights == KeptWeights(rows="C >= 1")
    assert not study().keep_weights.keeps_any("demo")


@pytest.mark.parametrize(
    ("steps", "total", "expected"),
    [
        ([0.5, 10], 100, (10, 50)),
        ([0.001], 100, ()),  # rounds to no step at all
        ([100, 200, 0.999], 100, ()),  # the last step's are kept in any case
        ([0.25, 25], 100, (25,)),
    ],
)
def test_steps_are_numbers_or_shares_and_never_the_last_one(steps, total, expected):
    assert KeptWeights(steps=steps).steps_of(total) == expected


@pytest.mark.parametrize("step", [0, -1, 1.5, "soon"])
def test_a_step_that_is_none_is_refused_with_its_key(step):
    with pytest.raises(UserError, match=r"own.yaml: keep_weights\.steps"):
        study(keep_weights={"rows": "C >= 1", "steps": [step]})


def test_a_tier_that_keeps_no_weights_has_no_entries_that_ask_them():
    sparsity = load_study("sparsity", REPOSITORY)
    names = {entry.name for entry in sparsity.readers}
    assert {entry.name for entry in sparsity.at_tier("gpu").readers} == names
    left = sparsity.at_tier("paper")
    assert names - {entry.name for entry in left.readers} == {
        "downstream", "relation", "F5", "F10", "sparser_models_read_worse",
        "sparsity_changes_no_score_at_equal_loss",
    }  # fmt: skip
    assert not left.keep_weights.keeps_any("paper")


def test_a_sweep_that_no_grid_has_is_refused():
    leverage = load_study("leverage", REPOSITORY)
    misspelt = leverage.model_copy(update={"keep_weights": KeptWeights(sweep="validatoin")})
    with pytest.raises(UserError, match="keep_weights: sweep: no grid has a sweep 'validatoin'"):
        check_study(misspelt)


def test_a_sweep_that_a_tier_lacks_keeps_nothing_there():
    leverage = load_study("leverage", REPOSITORY)
    assert leverage.keep_weights.sweep == "validation"
    tiers = {tier for tier in leverage.grids if "validation" not in leverage.lacking(tier)}
    assert tiers == {"demo", "gpu", "paper"}
    assert {e.name for e in leverage.at_tier("workstation").readers}.isdisjoint({"F6b", "T7"})


def test_rows_that_are_no_expression_are_refused_when_the_study_is_read():
    with pytest.raises(UserError, match=r"own.yaml: keep_weights .*'k << E' is not COLUMN"):
        study(keep_weights="S > 0 and k << E")
