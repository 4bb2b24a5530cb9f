"""A training that shares a GPU, in processes of its own; it computes on the CPU."""

import os
import subprocess
import sys
import time

import pytest

from moelaws.gpus.listing import list_gpus
from moelaws.gpus.slots import FOLDER, SHARES, taken
from moelaws.records.files import read_json
from nvidia_smi import nvidia_smi

# The command line where the GPU's memory is too small for some.
TIGHT = """
import os
from moelaws.cli import main
from moelaws.training.job import TrainingJob
build = TrainingJob.build_trainer
def build_if_there_is_room(job):
    if float(os.environ["MOELAWS_GPU_SHARE"]) < {least}:
        raise MemoryError("neighbours have it")
    return build(job)
TrainingJob.build_trainer = build_if_there_is_room
main()
"""


@pytest.fixture
def start(configure, results, corpus, tmp_path, monkeypatch):
    """Starts a training with a quarter of the machine's only GPU."""
    nvidia_smi(tmp_path / "bin", ["0, GPU-0, NVIDIA H100, 81559, 0, 0"])
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv(FOLDER, str(tmp_path / "slots"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    config = configure(steps=3)
    processes = []

    def go(least):
        with (tmp_path / "config.json").open("w+") as file, (tmp_path / "log").open("w") as log:
            file.write(config.canonical_json())
            file.seek(0)
            words = ["train", "-", "--results", results.root, "--corpus", corpus[1]]
            gpu = ["--device", "cpu", "--gpus", "all", "--gpu-shares", "6"]
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-c", TIGHT.format(least=least), *words, *gpu],
                    stdin=file, stdout=log, stderr=log,
                )
            )  # fmt: skip
        return processes[-1], tmp_path / "log", results.run(config.run_id)

    yield go
    for process in processes:
        process.kill()
        process.wait()


def test_a_run_that_lacks_memory_beside_others_is_tried_again_alone(start):
    with taken(list_gpus, 6, pytest.fail):
        process, log, record = start(least=1)
        deadline = time.monotonic() + 300
        while "waiting for a GPU" not in log.read_text():  # for the neighbour, which is this test
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert "trying again on a GPU that no other run shares" in log.read_text()
        assert read_json(record / "summary.json")["status"] == "out_of_memory"
    assert process.wait(300) == 0, log.read_text()
    assert read_json(record / "summary.json")["status"] == "completed"
    made_by = read_json(record / "provenance.json")
    assert (made_by["cuda_visible_devices"], made_by["gpu_share"]) == ("GPU-0", 1.0)
    assert "on GPU 0: NVIDIA H100 (GPU-0), 6/24 of it; CUDA MPS does not run" in log.read_text()


@pytest.mark.slow  # two starts of torch more
def test_a_run_that_lacks_memory_alone_too_is_out_of_memory(start):
    process, log, record = start(least=2)
    assert process.wait(300) == 0, log.read_text()
    assert read_json(record / "summary.json")["status"] == "out_of_memory"
    assert log.read_text().count("trying again") == 1
    assert log.read_text().count("on GPU 0") == 2
    with taken(list_gpus, SHARES, pytest.fail):
        assert os.listdir(record)
