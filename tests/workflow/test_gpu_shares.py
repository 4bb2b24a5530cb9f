"""What Snakemake hands out of the machine's GPUs."""

import pytest
from click.testing import CliRunner

from moelaws.accounting.cost import H100, estimate
from moelaws.cli import cli
from moelaws.gpus.slots import SHARES
from moelaws.grids.expand import expand
from moelaws.grids.text import CorpusChoice
from moelaws.spec.corpus import Text
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, load_project, load_study
from moelaws.workflow.gpus import GpuShares, gpus_here
from moelaws.workflow.requests import Requests
from nvidia_smi import nvidia_smi
from repository import REPOSITORY

TEXT = CorpusChoice(source=Text(digest="0" * 64), validation=0.05, seed=0)


@pytest.fixture(scope="module")
def runs():
    grid = load_study("sparsity", REPOSITORY).grids["gpu"]
    return {run.run_id: run for run in expand(grid, TEXT, "sparsity.yaml")}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Gives the machine so many GPUs of so many MiB."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def has(number, memory=81559, used=0):
        lines = [f"{i}, GPU-{i}, NVIDIA H100, {memory}, {used}, 0" for i in range(number)]
        nvidia_smi(tmp_path, lines)

    return has


def shares(runs=(), **keys):
    project = Project(device="cuda", **keys)
    gpus = gpus_here(project.gpus)
    return GpuShares(Requests(project, dict(runs), gpus), project.gpus, gpus)


def test_a_run_has_a_gpu_and_its_part_of_the_cores(machine, runs):
    machine(8)
    eight = shares(runs)
    assert eight.total == 8 * SHARES
    assert {eight.of(run) for run in runs} == {SHARES}
    assert {eight.threads(run, 64) for run in runs} == {8}
    assert {eight.threads(run, 4) for run in runs} == {1}
    assert eight.options == "--gpus all"
    two = shares(runs, gpus=(0, 2), runs_per_gpu=4)
    assert two.total == 2 * SHARES
    assert {two.of(run) for run in runs} == {6}
    assert {two.threads(run, 64) for run in runs} == {8}
    assert two.options == "--gpus 0,2"


def test_a_run_on_several_gpus_has_all_of_each(machine, runs):
    machine(8)
    two = shares(runs, devices_per_run=2, runs_per_gpu=4)
    assert {two.of(run) for run in runs} == {2 * SHARES}
    assert {two.threads(run, 64) for run in runs} == {16}
    assert two.words(runs).endswith("; a run that one GPU does not hold: on up to 2")
    with pytest.raises(UserError, match="is to train on 16 GPUs together, and 8 can be used here"):
        shares(runs, devices_per_run=16).words(runs)


def test_auto_goes_by_the_memory_of_the_run_and_of_the_gpu(machine, runs):
    machine(1)
    large = shares(runs, runs_per_gpu="auto")
    taken = {run: large.of(run) for run in runs}
    needs = {run: estimate(runs[run].config, H100).device_bytes for run in runs}
    ordered = [taken[run] for run in sorted(runs, key=needs.__getitem__)]
    assert ordered == sorted(ordered)
    assert SHARES // 8 <= min(taken.values()) < SHARES / 3 < max(taken.values()) <= SHARES
    assert all(
        needs[run] < taken[run] / SHARES * 81559 * 2**20 or taken[run] == SHARES for run in runs
    )
    machine(1, memory=12288)
    assert sum(shares(runs, runs_per_gpu="auto").of(run) for run in runs) > sum(taken.values())
    machine(1, memory="[N/A]")
    assert {shares(runs, runs_per_gpu="auto").of(run) for run in runs} == {SHARES}


def test_the_call_says_what_it_trains_on(machine):
    machine(2, used=9000)
    assert shares(gpus=(1,), runs_per_gpu=4).words([]) == (
        "trains on GPU 1 (NVIDIA H100, in use by now); runs on each: 4 at a time"
    )
    with pytest.raises(UserError, match="gpus names 5"):
        shares(gpus=(5,)).words([])


def test_where_no_gpu_is_a_dry_run_goes_on(monkeypatch, tmp_path, runs):
    monkeypatch.setenv("PATH", str(tmp_path))
    nowhere = shares(runs)
    assert (nowhere.total, nowhere.gpus) == (SHARES, ())
    with pytest.raises(UserError, match="nvidia-smi"):
        nowhere.words([])


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("gpus", [], "gpus is \\[\\]; it must be all or a list of 1 or more"),
        ("gpus", "0;2", "gpus is '0;2'; it must be all or a list"),
        ("runs_per_gpu", 5, "runs_per_gpu is 5; it must be auto, 1, 2, 3, 4, 6, 8, 12 or 24"),
        ("runs_per_gpu", True, "runs_per_gpu is true; it must be auto, 1, 2"),
    ],
)
def test_mistakes_are_told(key, value, words):
    with pytest.raises(UserError, match=words):
        load_project(REPOSITORY, {key: value})


@pytest.mark.parametrize(("typed", "meant"), [(2, (2,)), ("0,2", (0, 2)), ("all", "all")])
def test_gpus_as_they_are_typed(typed, meant):
    assert load_project(REPOSITORY, {"gpus": typed}).gpus == meant


def test_the_command_line_refuses_what_is_no_list_of_gpus():
    done = CliRunner().invoke(cli, ["train", "-", "--gpus", "some"])
    assert done.exit_code != 0
    assert "--gpus is 'some'; it must be all, or numbers such as 0,2" in str(done.exception)
