"""``moelaws grid`` without the name of a study."""

import json
from functools import partial

import pytest

from command_line import printed
from moelaws.spec.errors import UserError

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
