"""What the training of a run on several devices asks of a cluster."""

import pytest

from moelaws.accounting.cost import H100, estimate
from moelaws.gpus.listing import Gpu
from moelaws.grids.expand import expand
from moelaws.spec.project import Project, load_study
from moelaws.workflow.requests import Requests
from planned_study import TEXT
from repository import REPOSITORY


@pytest.fixture(scope="module")
def largest():
    """The sparsity paper's widest model at its highest sparsity: 3.8e11 parameters, on 150 GPUs."""
    grid = load_study("sparsity", REPOSITORY).grids["paper"]
    axes = {"C": 1e21, "S": 0.98, "G": 0.5, "n_layers": 32, "d_model": 2560}
    sweep = grid.sweeps[-1].model_copy(update={"axes": axes, "zip": ()})
    (run,) = expand(grid.model_copy(update={"sweeps": (sweep,)}), TEXT, "sparsity.yaml")
    return run


def requests(run, gpus=(), **keys):
    project = Project(**({"device": "cuda"} | keys))
    return Requests(project, {run.run_id: run}, here=bool(gpus), gpus=gpus)


def test_nodes_have_equal_numbers_of_devices(largest):
    run = [largest.run_id]
    assert requests(largest).devices(run) == 150
    assert requests(largest).nodes(run) == 25  # of 6 devices: 19 nodes of 8 could not be equal
    asked = requests(largest, devices_per_run=256)
    assert (asked.devices(run), asked.nodes(run)) == (256, 32)
    assert requests(largest, devices_per_run=8).nodes(run) == 1
    assert requests(largest, devices_per_run=8, gpus_per_node=4).nodes(run) == 2
    assert requests(largest, devices_per_run=8, device="cpu").nodes(run) == 1


def test_the_memory_of_the_gpus_decides_how_many_train_a_run(largest):
    """Of a cluster as it is told, of this machine as it is listed, by the smallest GPU."""

    def of_this_machine(*sizes):
        gpus = [Gpu(i, f"GPU-{i}", "a GPU", gb * 2**30, 0, 0) for i, gb in enumerate(sizes)]
        return requests(largest, tuple(gpus)).devices([largest.run_id])

    assert requests(largest, gpu_memory=640).devices([largest.run_id]) == 16
    assert of_this_machine(*[640] * 32) == 16
    assert of_this_machine(*[640] * 31, 80) == 32  # none suffice: those that come nearest
    assert of_this_machine(80, 0) == 2
    assert of_this_machine(0) == 1


def test_memory_is_that_of_a_node_and_time_that_of_all_together(largest):
    run, asked = [largest.run_id], requests(largest)
    cost = estimate(largest.config, H100, 150)
    assert asked.memory_mb(run, 1) == pytest.approx(400 + 1.5e-6 * cost.host_bytes / 25, abs=1)
    assert asked.minutes(run, 1) == min(2880, 11 + int(cost.seconds / 20))


def test_no_attempt_asks_beyond_the_limits_of_the_site(largest):
    run, asked = [largest.run_id], requests(largest, max_minutes=30, max_memory=2)
    assert {asked.minutes(run, attempt) for attempt in (1, 2, 3)} == {30}
    assert {asked.memory_mb(run, attempt) for attempt in (1, 2, 3)} == {2000}


def test_a_job_has_the_gpus_of_its_node_and_each_of_these_some_runs():
    study = load_study("sparsity", REPOSITORY)
    runs = {run.run_id: run for run in expand(study.grids["node"], TEXT, "sparsity.yaml")[:20]}
    small = list(runs)

    def asked(here=False, **keys):
        return Requests(Project(device="cuda", **keys), runs, here)

    node = asked(gpus_per_job=8, runs_per_gpu=2)
    assert (node.job_gpus(small), node.workers(small)) == (8, 16)
    assert (node.job_gpus(small[:3]), node.workers(small[:3])) == (3, 3)
    # Two runs share a GPU's time.
    assert node.project.batch_seconds == 8 * asked().project.batch_seconds
    assert node.minutes(small, 1) < asked().minutes(small, 1)
    assert node.memory_mb(small, 1) > asked().memory_mb(small, 1)
    assert asked(here=True, gpus_per_job=8).job_gpus(small) == 1
    fit = asked(runs_per_gpu="auto").runs_per_gpu(small)
    assert 1 <= fit <= 8
    assert asked(runs_per_gpu="auto", gpu_memory=0.5).runs_per_gpu(small) == 1
