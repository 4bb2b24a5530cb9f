"""A study's entries: what may name what, and what is left where losses are simulated."""

from pathlib import Path

import pytest

from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, chosen_studies, load_project
from moelaws.spec.study import Study
from repository import REPOSITORY

FIT = {"law": "leverage.curve", "mapping": {"C": "C", "L": "L"}}
PICTURE = {"code": "figures.one:draw", "caption": "A picture."}
CLAIM = {
    "statement": "It rises.",
    "source": "toy, Eq 1",
    "code": "claims:rises",
    "rule": "The slope decides.",
    "expect": {"above": 0},
}
STUDY = {
    "study": "toy",
    "title": "A toy",
    "fits": [
        {"name": "curve", **FIT},
        {"name": "of_points", "table": "points", **FIT},
        {"name": "balance", "simulated": False, **FIT},
    ],
    "derived": [
        {"name": "points", "code": "derived.points:derive", "fits": ["curve"]},
        {"name": "loads", "code": "derived.loads:derive", "fits": ["balance"]},
        {"name": "of_loads", "code": "derived.loads:derive", "derived": ["loads"]},
    ],
    "figures": [
        {"name": "F1", **PICTURE, "fits": ["of_points"], "derived": ["points"]},
        {"name": "F2", **PICTURE, "derived": ["of_loads"]},
    ],
    "tables": [{"name": "T1", **PICTURE, "simulated": False}],
    "claims": [
        {"name": "rises", **CLAIM, "figure": "F1", "fits": ["of_points"]},
        {"name": "balanced", **CLAIM, "figure": "F2"},
        {"name": "tabled", **CLAIM, "figure": "T1"},
    ],
}


def study(**changes: object) -> Study:
    return parse(Study, {**STUDY, **changes}, "toy.yaml")


@pytest.mark.parametrize("table", ["points", "curve"])
def test_circles_are_named(table):
    fits = [{"name": "curve", "table": table, **FIT}]
    with pytest.raises(UserError, match=rf"each needs the next: .*curve.*{table}"):
        study(fits=fits, derived=STUDY["derived"][:1], figures=[], tables=[], claims=[])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"claims": [{"name": "x", **CLAIM, "figure": "F9"}]}, "x: there is no figure 'F9'; there"),
        ({"tables": [{"name": "F1", **PICTURE}]}, "F1 is named twice"),
        ({"derived": [{"name": "curve", "code": "derived.x:derive"}]}, "curve is named twice"),
        ({"fits": [{"name": "a", "table": "b", **FIT}]}, "a: there is no derived table or fit 'b'"),
        ({"derived": [{"name": "a", "code": "../b:derive"}]}, "code"),
        ({"derived": [{"name": "a", "code": "derived.b"}]}, "code"),
        ({"claims": [{"name": "x", **CLAIM, "expect": {}, "figure": "F1"}]}, "have above or below"),
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
    assert [f.name for f in left.figures] == ["F1"]
    assert left.tables == ()
    assert [c.name for c in left.claims] == ["rises"]


def test_what_a_tier_has_no_sweep_for_is_left_out_there_with_all_that_needs_it():
    grid = {"sweeps": [{"name": "narrow", "axes": {"d_model": 16}}, {"axes": {"d_model": 32}}]}
    both = {"sweeps": [*grid["sweeps"], {"name": "deep", "axes": {"n_layers": 9}}]}
    fits = [{"name": "curve", "sweep": "deep", **FIT}, *STUDY["fits"][1:]]
    figure = {"name": "F3", **PICTURE, "with": {"sweep": "deep"}}
    toy = study(grids={"demo": grid, "gpu": both}, fits=fits, figures=[*STUDY["figures"], figure])
    assert toy.at_tier("gpu") == toy
    left = toy.at_tier("demo")
    assert [f.name for f in left.fits] == ["balance"]
    assert [d.name for d in left.derived] == ["loads", "of_loads"]
    assert [p.name for p in left.pictures] == ["F2", "T1"]
    assert [c.name for c in left.claims] == ["balanced", "tabled"]


def test_simulated_losses_are_of_the_papers_grids_unless_a_tier_is_asked_for():
    path = Path("config/config.yaml")
    assert load_project(REPOSITORY, {"source": "simulated"}, path).tier == "paper"
    assert load_project(REPOSITORY, {"source": "simulated", "tier": "gpu"}, path).tier == "gpu"
    assert load_project(REPOSITORY, {}, path).tier == "demo"


def test_all_studies_are_the_papers_and_public_runs_and_the_search_goes_by_its_name():
    names = [study.study for study in chosen_studies(Project(studies="all"), REPOSITORY)]
    papers = ["allocation", "generalization", "leverage", "routing", "sectional", "sparsity"]
    assert names == sorted([*papers, "public"])
    # Published runs are no law's losses, and no law gives those of sectional models.
    simulated = Project(studies="all", source="simulated")
    names = [study.study for study in chosen_studies(simulated, REPOSITORY)]
    assert names == [name for name in papers if name not in ("routing", "sectional")]
    chosen = chosen_studies(Project(studies=("hyperparameters",)), REPOSITORY)
    assert [study.study for study in chosen] == ["hyperparameters"]
