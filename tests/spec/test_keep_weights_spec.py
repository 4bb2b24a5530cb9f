"""What the configuration and a study's keep_weights may say."""

import pytest

from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.kept_weights import KeptWeights
from moelaws.spec.project import load_project, load_study
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


def test_a_mistake_in_the_configuration_is_placed_there(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text("teir: demo")
    message = r"^config/config.yaml: unknown key teir; did you mean tier\? Allowed here: batch_min"
    with pytest.raises(UserError, match=message):
        load_project(tmp_path)


def test_a_missing_configuration_and_an_unknown_study(tmp_path):
    with pytest.raises(UserError, match=r"no such file; run from the repository's root"):
        load_project(tmp_path)
    with pytest.raises(UserError, match=r"'sparsty'; did you mean sparsity\? There are: .*spars"):
        load_study("sparsty", REPOSITORY)


@pytest.mark.parametrize("form", ["sparsity,allocation", ["sparsity", "allocation"]])
def test_studies_as_a_user_types_them(form):
    assert load_project(REPOSITORY, {"studies": form}).studies == ("sparsity", "allocation")
