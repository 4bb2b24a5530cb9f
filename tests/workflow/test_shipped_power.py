"""Trials of rules that the repository ships are printed for the grid and the rules they are of."""

import json
from pathlib import Path

import pytest

from moelaws.files.trials import SHIPPED, trial
from moelaws.spec.project import load_study
from moelaws.workflow.jobs import Jobs
from repository import REPOSITORY

FILES = sorted((REPOSITORY / SHIPPED).glob("*/*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_shipped_trials_are_of_the_present_grid_and_rules(path):
    """If this fails, give `make power STUDY --tier TIER --set power=100 --out` that file."""
    study = load_study(path.stem, REPOSITORY).at_tier(path.parent.name)
    assert json.loads(path.read_text())["trial"] == trial(study, path.parent.name)


def test_another_grid_or_trials_of_its_own_leave_shipped_ones_aside(project_folder):
    shipped = Path("config/power/demo/sparsity.json")
    shipped.parent.mkdir(parents=True, exist_ok=True)
    digest = trial(load_study("sparsity", REPOSITORY).at_tier("demo"), "demo")
    shipped.write_text(json.dumps({"trial": digest}))
    assert Jobs.load({"studies": "sparsity"}).powers() == [shipped]
    made = Jobs.load({"studies": "sparsity", "power": 2})
    assert made.powers() == [made.folder.power("sparsity")]
    study = Path("config/studies/sparsity.yaml")
    study.write_text(study.read_text().replace("d_model: 12, seed: 1", "d_model: 16, seed: 1"))
    assert Jobs.load({"studies": "sparsity"}).powers() == []
