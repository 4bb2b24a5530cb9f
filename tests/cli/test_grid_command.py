"""``moelaws grid`` without the name of a study."""

import json
import shutil

import pytest
from click.testing import CliRunner

from moelaws.cli import cli
from moelaws.spec.errors import UserError
from repository import REPOSITORY

CHOSEN = "studies=generalization,sparsity,routing"


@pytest.fixture
def grid(tmp_path, monkeypatch):
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    (tmp_path / "text.txt").write_text("a text\n")
    monkeypatch.chdir(tmp_path)

    def call(*words):
        options = ["--set", CHOSEN, "--set", "corpus=text.txt", *words]
        return CliRunner().invoke(cli, ["grid", *options], catch_exceptions=True)

    return call


def test_every_chosen_study_that_has_a_grid_is_listed(grid):
    rows = json.loads(grid("--json").stdout)
    assert list(rows) == ["generalization", "sparsity"]  # routing imports its runs
    run = rows["sparsity"][-1]["run_id"]
    assert (
        json.loads(grid("--run", run).stdout)["model"]["d_model"] == rows["sparsity"][-1]["d_model"]
    )
    titles = [line for line in grid().stdout.splitlines() if ", demo: " in line]
    assert [title.partition(",")[0] for title in titles] == ["generalization", "sparsity"]


def test_a_tier_that_no_chosen_study_has(grid):
    done = grid("--set", "studies=routing", "--tier", "gpu")
    assert isinstance(done.exception, UserError)
    assert "no study of the configuration (routing) has a grid gpu" in str(done.exception)
