"""Several processes train one run from the command line: they end together, and begin again."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file

from moelaws.files.atomic import read_json
from moelaws.spec.errors import UserError
from moelaws.training.together import Node, node_of, together

slow = pytest.mark.slow

# What Python loads first: memory lacks in the second process, for more than one sequence.
LACK = """
import os
if os.environ.get("RANK") == "1":
    from moelaws.training.loop import Trainer
    whole = Trainer._micro_batch

    def lacks(trainer, tokens, first):
        if trainer.micro_batch > 1 and trainer.step == 3:
            raise RuntimeError("DefaultCPUAllocator: not enough memory")
        return whole(trainer, tokens, first)

    Trainer._micro_batch = lacks
"""


@pytest.fixture
def arguments(configure, tmp_path):
    """Makes the words that train a run in a folder."""

    def make(folder, *words, steps=30):
        # At a low rate, for rounding alone would flip tokens between experts in hundreds of steps.
        small = {"steps": steps, "batch": 4, "balance_group": 1, "optimizer": {"lr": 3e-4}}
        file = tmp_path / f"{steps}.json"
        file.write_text(configure(**small, max_epochs=1e6).canonical_json())
        return [file, "--out", tmp_path / folder, *words]

    return make


@pytest.fixture
def command(arguments, started):
    """Starts the training of a run in a process of its own."""

    def start(folder, *words, steps=30, **how):
        return started(*arguments(folder, *words, steps=steps), **how)

    return start


def children(process):
    return psutil.Process(process.pid).children()


def training(process, folder):
    """Waits for the first steps."""
    while not (folder / "history_so_far.parquet").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)


KEEP = ("--keep-weights", "--keep-steps", "5")  # passed before the first kill


@slow
def test_a_run_ends_with_any_of_its_processes_and_goes_on_with_others(command, tmp_path):
    assert command("alone", *KEEP, steps=300).wait() == 0
    process = command("run", "--devices", "2", *KEEP, steps=300)
    training(process, tmp_path / "run")
    process.terminate()
    _, errors = process.communicate()
    assert process.returncode == 143
    lines = errors.splitlines()
    assert sum("stopped by SIGTERM; checkpoint written" in line for line in lines) == 1

    process = command("run", "--devices", "4", *KEEP, steps=300)
    training(process, tmp_path / "run")
    (tmp_path / "run/history_so_far.parquet").unlink()
    training(process, tmp_path / "run")
    workers = children(process)
    assert len(workers) == 4
    sorted(workers, key=lambda worker: worker.pid)[2].kill()
    _, errors = process.communicate(timeout=60)  # seconds, but not on this test's busy cores
    assert process.returncode == 128 + signal.SIGKILL
    told = [line for line in errors.splitlines() if "step " not in line and "back end" not in line]
    assert told == [
        "moelaws: process 2 of the 4 that train this run was ended by SIGKILL, and so were the "
        "others; call again to continue from the last checkpoint"
    ]
    assert not any(worker.is_running() for worker in workers)

    process = command("run", "--devices", "2", *KEEP, "--json", steps=300)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "resumed at step" in errors
    summary, alone = (read_json(tmp_path / name / "summary.json") for name in ("run", "alone"))
    assert json.loads(out)["run_id"] == summary["run_id"]
    assert summary["loss"] == pytest.approx(alone["loss"], abs=1e-4)
    made_by = read_json(tmp_path / "run/provenance.json")
    assert made_by["devices"] == 2
    assert [before["devices"] for before in made_by["resumed_from"]][:1] == [2]
    for file in ("step_5.safetensors", "model.safetensors"):
        kept, expected = (
            load_file(tmp_path / name / "weights" / file) for name in ("run", "alone")
        )
        assert kept.keys() == expected.keys()
        for name, weight in expected.items():
            np.testing.assert_allclose(kept[name], weight, atol=1e-3)
    assert not (tmp_path / "run/checkpoint").exists()


@slow
@pytest.mark.parametrize(
    ("program", "words"),
    [([], ["--devices", "2"]), (["-m", "torch.distributed.run", "--nproc-per-node", "2"], [])],
)
def test_no_process_outlives_the_one_that_started_it(command, tmp_path, program, words):
    """What it locked, such as GPUs, is free from then on."""
    process = command("run", *words, steps=3000, program=(*program, "-m", "moelaws"))
    training(process, tmp_path / "run")
    workers = children(process)
    assert len(workers) == 2
    process.kill()
    process.wait()
    _, left = psutil.wait_procs(workers, timeout=10)
    for worker in left:
        worker.kill()
    assert left == []


@pytest.fixture
def on_two_nodes(command, tmp_path):
    """Starts two tasks on this machine, told by Slurm's variables that they are on two nodes."""
    program = tmp_path / "bin/scontrol"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$3" = "n[1-2]" ] && printf "localhost\\nlocalhost\\n"\n')
    program.chmod(0o755)
    with socket.socket() as free:
        free.bind(("", 0))
        job = free.getsockname()[1] - 20000
    step = {
        "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NODELIST": "n[1-2]",
        "SLURM_JOB_ID": str(job), "SLURM_STEP_ID": "0",
        "PATH": f"{program.parent}:{os.environ['PATH']}",
    }  # fmt: skip

    def start(steps=30, **environment):
        return [
            command("run", "--devices", "2", steps=steps, **step, SLURM_NODEID=node, **environment)
            for node in ("0", "1")
        ]

    return start


@slow
def test_processes_meet_across_nodes_and_where_one_lacks_memory_all_begin_again(
    on_two_nodes, tmp_path
):
    (tmp_path / "sitecustomize.py").write_text(LACK)
    tasks = on_two_nodes(PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    said = [task.communicate(timeout=120) for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], said
    assert "out of memory; all processes start again" in said[1][1]
    assert "starting again, for it may have lacked memory" in said[0][1]
    assert "".join(out for out, _ in said).count("completed") == 1
    made_by = read_json(tmp_path / "run/provenance.json")
    assert (made_by["devices"], made_by["micro_batch"]) == (2, 1)


# A stranger's program: it puts a pickle where PyTorch's elastic agents would unpickle it.
ATTACK = """
import base64, os, pickle, sys, threading, time
from datetime import timedelta
import torch.distributed as dist

class Harm:
    def __reduce__(self):
        return os.mkdir, (sys.argv[1],)

def attack(port):
    try:
        store = dist.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=20))
    except dist.DistError:
        return
    for key in ("torch.rendezvous.moelaws", "arrived", "complete", "default_pg/0//0"):
        store.set("/" + key, base64.b64encode(pickle.dumps(Harm())))
        store.set(key, base64.b64encode(pickle.dumps(Harm())))
    print("written", flush=True)

for port in sys.argv[2:]:
    threading.Thread(target=attack, args=[int(port)]).start()
time.sleep(20)
os._exit(0)  # a port of another protocol leaves it waiting
"""


@slow
@pytest.mark.parametrize("nodes", [1, 2])
def test_strangers_reach_no_port_by_which_they_command_the_training_user(
    command, on_two_nodes, tmp_path, nodes
):
    if nodes == 1:
        tasks = [command("run", "--devices", "2", steps=100_000)]
    else:
        tasks = on_two_nodes(steps=100_000)
    training(tasks[0], tmp_path / "run")
    processes = [one for task in tasks for one in (psutil.Process(task.pid), *children(task))]
    open_ones = [each for one in processes for each in one.net_connections("tcp")]
    found = [each.laddr for each in open_ones if each.status == psutil.CONN_LISTEN]
    harm = tmp_path / "harm"
    attack = [sys.executable, "-c", ATTACK, str(harm), *(str(at.port) for at in found)]
    tried = subprocess.run(attack, capture_output=True, text=True, timeout=120)
    still = [task.poll() for task in tasks]
    for task in tasks:
        task.kill()
        task.wait()
    assert not harm.exists()
    assert still == [None] * len(tasks)
    assert len(found) >= 2  # those by which the processes exchange tensors
    assert {at.ip for at in found} == {"127.0.0.1"}
    assert tried.stdout.count("written") == (nodes == 2), tried.stderr


STRAY = "(WORLD_SIZE is|the nodes .* at the MASTER_ADDR)"
TWO = {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"}


@pytest.mark.parametrize(
    ("variables", "words", "told"),
    [
        ({"WORLD_SIZE": "two"}, (), STRAY),
        ({"WORLD_SIZE": "2", "RANK": "2"}, (), STRAY),
        (TWO, (), STRAY),
        (TWO, ("--devices", "4"), ".*torchrun has started 2 processes for this run"),
        ({}, ("--devices", "5"), ".*each takes whole sequences of a batch, which has 4$"),
        ({}, ("--nodes", "2"), "--nodes is 2; it must be at most --devices, which is 1$"),
    ],
)
def test_a_mistake_is_told_in_a_line(arguments, ended, monkeypatch, variables, words, told):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    code, _, errors = ended("train", *arguments("run", *words))
    assert code == 2
    assert re.match(f"moelaws: {told}", errors, re.MULTILINE), errors
    assert len(errors.splitlines()) == 1


def test_a_process_alone_is_a_node_of_its_own():
    assert node_of({"SLURM_JOB_NUM_NODES": "4"}) == Node()  # in a job, but in no step of several
    several = {"SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NUM_TASKS": "8"}
    with pytest.raises(UserError, match="has 8 tasks on 2 nodes; start one on each"):
        node_of(several)
    with pytest.raises(UserError, match="3 devices cannot be shared equally by 2 nodes"):
        together([], "", 3, Node(0, 2))
