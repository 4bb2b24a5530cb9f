"""What a sweep would cost, and the ceiling that refuses one before it starts."""

import pytest

from moelaws.accounting.cost import CPU, H100, estimate
from moelaws.accounting.parameters import count_parameters
from moelaws.files.layout import Results
from moelaws.grids.budget import AT_ONCE, budget, over_limit
from moelaws.grids.expand import expand
from moelaws.grids.sweep import Sweep
from moelaws.spec.project import Project, load_project, load_study
from planned_study import TEXT
from repository import REPOSITORY


def sweep_of(tier):
    study = load_study("sparsity", REPOSITORY)
    return Sweep(study, tier, tuple(expand(study.grids[tier], TEXT, "sparsity.yaml")))


@pytest.fixture(scope="module")
def gpu():
    return sweep_of("node")


def allowed(**limits):
    return Project(tier="node", device="cuda", limits=limits)


def finish(results, run_id):
    results.summary(run_id).parent.mkdir(parents=True)
    results.summary(run_id).write_text("{}")


def test_costs_add_up_over_runs(gpu):
    total = budget(gpu.runs, H100)
    assert total.runs == len(gpu.runs)
    seconds = sum(estimate(run.config, H100).seconds for run in gpu.runs)
    assert total.hours == pytest.approx(seconds / 3600)
    assert total.tokens == sum(run.config.tokens for run in gpu.runs)
    # What the grid names as budgets, rounded to whole steps.
    assert total.flops == pytest.approx(sum(run.C for run in gpu.runs), rel=0.01)
    # Two bytes for each token that the longest run reads of the text, which all share
    longest = max(run.config.tokens for run in gpu.runs)
    assert total.disk["text"] == pytest.approx(2 * longest / 0.95)


def test_checkpoints_on_disk_are_those_of_runs_unfinished_at_once(gpu):
    """12 bytes a parameter of the largest AT_ONCE runs, however many runs there are."""
    size = {run.run_id: count_parameters(run.config.model).total for run in gpu.runs}
    largest = max(gpu.runs, key=lambda run: size[run.run_id])
    many = [largest] * (3 * AT_ONCE)
    assert budget(many, H100).disk["checkpoints"] == 12 * AT_ONCE * size[largest.run_id]
    assert budget(gpu.runs, H100).disk["checkpoints"] == 12 * sum(size.values())


def test_weights_and_hidden_states_count_where_they_are_kept(gpu):
    run = gpu.runs[0]
    without = budget(gpu.runs, H100).disk
    total = budget(gpu.runs, H100, {run.run_id: ()}, {run.run_id}).disk
    assert (without["weights"], without["hidden states"]) == (0, 0)
    assert total["weights"] == 4 * count_parameters(run.config.model).total
    assert total["hidden states"] > 0
    on_the_way = budget(gpu.runs, H100, {run.run_id: (10, 20)}).disk
    assert on_the_way["weights"] == 3 * total["weights"]


def test_a_demo_and_a_day_of_gpus_are_allowed_by_the_shipped_limits(gpu, tmp_path):
    results = Results(tmp_path)
    shipped = load_project(REPOSITORY)
    assert over_limit([sweep_of("demo")], shipped, results) == ""
    device = {"tier": "node", "device": "cuda"}
    assert over_limit([gpu], load_project(REPOSITORY, device), results) == ""


def test_the_papers_own_sweep_is_refused_with_the_numbers_and_what_to_do(tmp_path):
    project = load_project(REPOSITORY, {"tier": "paper", "device": "cuda"})
    text = over_limit([sweep_of("paper")], project, Results(tmp_path))
    assert "the 216 runs still to train at tier paper would take" in text
    assert "more than limits.gpu_hours = 500" in text
    assert "more than limits.disk_gb = 500" in text


def test_runs_that_are_done_cost_nothing(gpu, tmp_path):
    project, results = allowed(gpu_hours=1, disk_gb=1000), Results(tmp_path)
    problem = over_limit([gpu], project, results)
    assert "GPU-hours" in problem
    assert over_limit([gpu, gpu], project, results) == problem  # runs that studies share count once
    for run in gpu.runs[1:]:
        finish(results, run.run_id)
    assert over_limit([gpu], project, results) == ""
    tight = allowed(gpu_hours=1e-3)
    assert "the 1 run still to train" in over_limit([gpu], tight, results)
    first, last = gpu.runs[0].run_id, gpu.runs[-1].run_id
    finish(results, first)
    assert over_limit([gpu], tight, results) == ""
    # One that lacked memory is tried again, and one whose weights are wanted and are not there.
    results.lacked_memory(first).write_text("{}")
    assert "the 1 run still" in over_limit([gpu], tight, results)
    assert "the 2 runs" in over_limit([gpu], tight, results, kept={last: ()})


def test_cores_have_a_limit_of_their_own(tmp_path):
    demo = sweep_of("demo")
    hours = budget(demo.runs, CPU).hours
    project = Project(limits={"cpu_hours": hours / 2, "gpu_hours": 1e-6})
    text = over_limit([demo], project, Results(tmp_path))
    assert "CPU-hours" in text
    assert "gpu_hours" not in text
