"""A study's entries: what may name what, and what is left where losses are simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, chosen_studies, load_project
from moelaws.spec.study import Study
from repository import REPOSITORY

FIT = {"law": "leverage.curve", "mapping": {"C": "C", "L": "L"}}
STUDY = {
    "study": "toy",
    "title": "A toy",
    "fits": [
        {"name": "curve", **FIT},
        {"name": "of_points", "table": "points", **FIT},
        {"name": "balance", "simulated": False, **FIT},
    ],
    "derived": [
        {"name": "points", "code": "toy.points", "fits": ["curve"]},
        {"name": "loads", "code": "toy.loads", "fits": ["balance"]},
        {"name": "of_loads", "code": "toy.loads", "derived": ["loads"]},
    ],
    "figures": [
        {"id": "F1", "code": "one", "caption": "c", "fits": ["of_points"], "derived": ["points"]},
        {"id": "F2", "code": "two", "caption": "c", "derived": ["of_loads"]},
    ],
    "tables": [{"id": "T1", "code": "three", "caption": "c", "simulated": False}],
    "claims": [
        {"id": "rises", "figure": "F1", "fits": ["of_points"]},
        {"id": "balanced", "figure": "F2"},
        {"id": "tabled", "figure": "T1"},
    ],
}


def study(**changes: object) -> Study:
    return parse(Study, {**STUDY, **changes}, "toy.yaml")


def test_a_fit_of_a_derived_table_of_a_fit_is_no_circle():
    assert study().fit("of_points").table == "points"


def test_circles_are_named():
    fits = [{"name": "curve", "table": "points", **FIT}]
    with pytest.raises(UserError, match=r"each needs the next: .*curve.*points"):
        study(fits=fits, derived=STUDY["derived"][:1], figures=[], tables=[], claims=[])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"claims": [{"id": "x", "figure": "F9"}]}, "x: figure: the study has no figure 'F9'"),
        ({"tables": [{"id": "F1", "code": "x", "caption": "c"}]}, "F1 is named twice"),
        ({"derived": [{"name": "curve", "code": "x"}]}, "curve is named twice"),
        ({"fits": [{"name": "a", "table": "b", **FIT}]}, "no derived table or other fit 'b'"),
        ({"fits": [{"name": "a", "table": "a", **FIT}]}, "no derived table or other fit 'a'"),
        ({"derived": [{"name": "a", "code": "../b"}]}, "code"),
    ],
)
def test_names_that_lead_nowhere_are_refused(changes, message):
    with pytest.raises(UserError) as error:
        study(**changes)
    assert message in str(error.value)


def test_what_simulated_losses_cannot_give_is_left_out_with_all_that_needs_it():
    left = study().of_simulated()
    assert [f.name for f in left.fits] == ["curve", "of_points"]
    assert [d.name for d in left.derived] == ["points"]
    assert [f.id for f in left.figures] == ["F1"]
    assert left.tables == ()
    assert [c.id for c in left.claims] == ["rises"]


def test_a_fit_of_thousands_of_simulated_rows_may_start_less_often():
    simulation = {"law": "leverage.curve", "protocol": {"curve": {"sample": 50}}}
    made = study(simulation=simulation)
    assert made.fit("curve").protocol == {}
    assert made.of_simulated().fit("curve").protocol == {"sample": 50}
    with pytest.raises(UserError, match="simulation: protocol: no fit 'loss'"):
        study(simulation={"law": "leverage.curve", "protocol": {"loss": {}}})


def test_simulated_losses_are_of_the_papers_grids_unless_a_tier_is_asked_for():
    path = Path("config/config.yaml")
    assert load_project(REPOSITORY, {"source": "simulated"}, path).tier == "paper"
    assert load_project(REPOSITORY, {"source": "simulated", "tier": "gpu"}, path).tier == "gpu"
    assert load_project(REPOSITORY, {}, path).tier == "demo"


def test_all_studies_are_the_papers_and_the_search_goes_by_its_name():
    names = [study.study for study in chosen_studies(Project(studies="all"), REPOSITORY)]
    assert names == ["allocation", "generalization", "leverage", "sectional", "sparsity"]
    asked = chosen_studies(Project(studies=("hyperparameters",)), REPOSITORY)
    assert [study.study for study in asked] == ["hyperparameters"]
