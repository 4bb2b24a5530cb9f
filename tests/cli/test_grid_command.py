"""``moelaws grid`` without the name of a study."""

import json
from functools import partial
from pathlib import Path

import pytest
import yaml

from command_line import printed
from moelaws.spec.errors import UserError
from planned_study import STUDY as SMALL

CHOSEN = "studies=generalization,sparsity,routing"


@pytest.fixture
def grid(project_folder):
    (project_folder / "text.txt").write_text("a text\n")
    return partial(printed, "grid", "--set", CHOSEN, "--set", "corpus=text.txt")


def test_every_chosen_study_that_has_a_grid_is_listed(grid):
    rows = json.loads(grid("--json"))
    assert list(rows) == ["generalization", "sparsity"]  # routing imports its runs
    run = rows["sparsity"][-1]
    assert json.loads(grid("--run", run["run_id"]))["model"]["d_model"] == run["d_model"]
    titles = [line for line in grid().splitlines() if ", demo: " in line]
    assert [title.partition(",")[0] for title in titles] == ["generalization", "sparsity"]


def test_a_tier_that_no_chosen_study_has(grid):
    with pytest.raises(
        UserError, match=r"no study of the configuration \(routing\) has a grid gpu"
    ):
        grid("--set", "studies=routing", "--tier", "gpu")


GRID = SMALL["grids"]["demo"]
SHARING = GRID["settings"] | {"schedule": "wsd", "warmup_steps": 10, "n_experts": 4}
WIDTH = {"d_expert": GRID["derive"]["d_expert"]}


def listed(settings, derive, axes):
    grid = {"settings": settings, "derive": derive, "sweeps": [{"axes": axes}]}
    study = {"study": "small", "title": "Several lengths", "grids": {"demo": grid}}
    Path("config/studies/small.yaml").write_text(yaml.safe_dump(study))
    return printed("grid", "small"), json.loads(printed("grid", "small", "--json"))


def test_what_runs_of_one_trunk_spend(project_folder):
    """100 steps, of 200 all but the first 90, and of 400 all but the first 180."""
    text, rows = listed(SHARING, WIDTH, {"steps": [100, 200, 400], "d_model": [64, 128]})
    assert [row["shared_steps"] for row in rows] == [0, 90, 180] * 2
    for row in rows:
        own = 1 - row["shared_steps"] / row["steps"]
        assert row["flops_spent"] == pytest.approx(row["C_sparsity"] * own)
    assert "4 runs go on from a shorter one of the same trunk" in text
    assert "share no trunk" not in text
    assert f"FLOPs ({430 / 700:.0%}) are really spent" in text


def test_rates_that_depend_on_the_length_make_no_trunk(project_folder):
    settings = {key: value for key, value in SHARING.items() if key != "lr"}
    rate = {"rule": "power", "value": 1e-3, "at": {"C": 1.0}, "exponent": {"C": -0.1}}
    by_tokens = {"rule": "tokens", "min_steps": 10, "laws_at": {"convention": "sparsity"}}
    derive = {**WIDTH, "lr": rate, "steps": by_tokens}
    text, rows = listed(settings, derive, {"D": [1e5, 2e5], "d_model": 64})
    assert not any(row["shared_steps"] for row in rows)
    why = ": learning rates or batches depend on the length"
    assert "no trunk is shared" + why in text
    rates = {"rule": "table", "by": ["D"], "rows": [[1e5, 0.01], [2e5, 0.01], [4e5, 0.02]]}
    text, rows = listed(settings, derive | {"lr": rates}, {"D": [1e5, 2e5, 4e5], "d_model": 64})
    assert [row["shared_steps"] > 0 for row in rows] == [False, True, False]
    assert "1 run goes on from a shorter one" in text
    assert "some runs share no trunk" + why in text


def test_a_warm_up_as_long_as_the_run_is_refused(project_folder):
    with pytest.raises(UserError, match="warmup_steps is 10; it must be below the 10 steps"):
        listed(SHARING, WIDTH, {"steps": 10, "d_model": 64})
