"""Stages: named parts of a grid that are trained, fitted and judged without the others."""

import json

import pytest
import yaml

from moelaws.accounting.cost import device_of, estimate
from moelaws.grids.sweep import expand_study, too_long_for
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, load_project, load_study, study_names
from moelaws.tables.at_hand import as_made, left_out
from repository import REPOSITORY

FILE = "config/studies/leverage.yaml"
# Sweep of leverage's demo -> its stage; others are in the last one
STAGES = {"dense": "small", "activation": "small", "granularity": "finer"}


@pytest.fixture
def staged(project_folder):
    """Leverage, whose demo has three stages; another sweep repeats a part of the first one."""
    path = project_folder / FILE
    study = yaml.safe_load(path.read_text())
    sweeps = study["grids"]["demo"]["sweeps"]
    for sweep in sweeps:
        sweep["stage"] = STAGES.get(sweep["name"], "rest")
    loss = next(fit for fit in study["fits"] if fit["name"] == "loss")
    loss["stages"] = ["small", "finer"]  # it needs models of several granularities
    path.write_text(yaml.safe_dump(study))
    return sweeps


def grids(study):
    return load_study(study, REPOSITORY).grids


def of(stages):
    project = load_project(overrides={"studies": "leverage", "stages": stages})
    return project, as_made(load_study("leverage"), project)


def runs_of(stages):
    project, study = of(stages)
    return {run.run_id: run.sweeps for run in expand_study(study, project).runs}


def test_stages_are_parts_of_the_grid_whose_runs_are_its_runs(staged):
    whole = runs_of("all")
    parts = [runs_of(stage) for stage in ("small", "finer", "rest")]
    assert set().union(*parts) == whole.keys()
    assert all(part.keys() < whole.keys() for part in parts)
    assert runs_of("small,finer").keys() == parts[0].keys() | parts[1].keys()
    assert {sweep for sweeps in parts[0].values() for sweep in sweeps} == {"dense", "activation"}


def test_entries_of_sweeps_that_no_chosen_stage_has_are_left_out_and_named(staged):
    project, study = of("small")
    names = {entry.name for entry in (*study.fits, *study.readers)}
    assert "curve_activation" in names
    assert "loss" not in names
    assert "loss" in {fit.name for fit in of("small,finer")[1].fits}
    assert not {"granularity", "curve_granularity"} & names
    (said,) = left_out(load_study("leverage"), project)
    assert "the tier demo, stages small, has no sweep " in said
    assert "granularity" in said
    every, whole = (left_out(load_study("leverage"), of(s)[0]) for s in ("small,finer,rest", "all"))
    assert every[0].split("left out: ")[1] == whole[0].split("left out: ")[1]


def test_entries_that_need_a_stage_which_is_not_chosen_say_so():
    study, project = load_study("allocation", REPOSITORY), Project(tier="gpu", stages=("at_3e14",))
    (said,) = left_out(study, project)
    assert said.startswith("allocation: the stages at_9e14 of the tier gpu are not chosen, so ")


def test_an_unknown_stage_is_refused_with_those_there_are(staged):
    with pytest.raises(
        UserError, match=r"grids\.demo: there is no stage 'smal'; did you mean small"
    ):
        of("smal")


def test_each_stage_is_listed_with_what_it_adds(staged, ended):
    code, out, _ = ended("grid", "leverage", "--stages", "--json")
    rows = json.loads(out)
    assert (code, [row["stage"] for row in rows]) == (0, ["small", "finer", "rest"])
    assert sum(row["runs"] for row in rows) == len(runs_of("all"))
    code, out, _ = ended("grid", "sparsity", "--stages")
    assert (code, out.strip()) == (0, "no grid of these has stages")


def test_runs_of_other_stages_are_no_orphans(staged, project_folder, ended):
    run = next(iter(runs_of("finer").keys() - runs_of("small").keys()))
    folder = project_folder / "results/runs" / run
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text('{"status": "completed"}')
    (folder / "provenance.json").write_text('{"code": "0"}')
    config = project_folder / "config/config.yaml"
    config.write_text(config.read_text().replace("stages: all ", "stages: [small] "))
    _, out, error = ended("verify")
    assert (run in out, "orphaned" in error) == (True, False), error
    (row,) = [line for line in out.splitlines() if run in line]
    assert "no grid of this project" not in row


@pytest.mark.parametrize("study", [s for s in study_names(REPOSITORY) if "gpu" in grids(s)])
def test_stages_of_the_gpu_tier_take_ten_minutes_and_no_text_five_times(study, monkeypatch):
    """By what an H200 trained a second, and four passes over the text of docs/gpus.md."""
    monkeypatch.chdir(REPOSITORY)
    grid = grids(study)["gpu"]
    project = Project(tier="gpu", device="cuda", runs_per_gpu=8)
    assert all(sweep.stage for sweep in grid.sweeps)
    for stage in grid.stages:
        sweep = expand_study(load_study(study), project.model_copy(update={"stages": (stage,)}))
        costs = [estimate(run.config, device_of("cuda", project)) for run in sweep.runs]
        assert sum(cost.flops for cost in costs) < 5.5e16, stage
        assert sum(cost.device_seconds for cost in costs) < 700, stage
        assert max(run.config.tokens for run in sweep.runs) < 4 * 67.4e6, stage
        assert max(run.config.max_epochs for run in sweep.runs) <= 4
        assert "set corpus in config/config.yaml to a larger text" in too_long_for(sweep), stage
