"""A study's entries: what may name what, and what is left where losses are simulated."""

from pathlib import Path

import pytest

from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.kept_weights import KeptWeights
from moelaws.spec.project import Project, chosen_studies, load_project, load_study
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


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([0.5, 10], (10, 50)),
        ([0.001], ()),  # rounds to no step at all
        ([100, 200, 0.999], ()),  # the last step's are kept in any case
        ([0.25, 25], (25,)),
    ],
)
def test_steps_of_kept_weights_are_numbers_or_shares_and_never_the_last_one(steps, expected):
    assert KeptWeights(steps=steps).steps_of(100) == expected


def test_a_tier_that_keeps_no_weights_has_no_entries_that_ask_them():
    sparsity = load_study("sparsity", REPOSITORY)
    names = {entry.name for entry in sparsity.readers}
    assert {entry.name for entry in sparsity.at_tier("node").readers} == names
    left = sparsity.at_tier("paper")
    assert names - {entry.name for entry in left.readers} == {
        "downstream", "relation", "F5", "F10", "sparser_models_read_worse",
        "sparsity_changes_no_score_at_equal_loss",
    }  # fmt: skip
    assert not left.keep_weights.keeps_any("paper")


def test_a_mistake_in_the_configuration_is_placed_there(tmp_path):
    with pytest.raises(UserError, match=r"no such file; run from the repository's root"):
        load_project(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text("teir: demo")
    message = r"^config/config.yaml: unknown key teir; did you mean tier\? Allowed here: batch_min"
    with pytest.raises(UserError, match=message):
        load_project(tmp_path)


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
