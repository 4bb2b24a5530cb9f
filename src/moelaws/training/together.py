"""Several processes for one run: starts them, and ends all of them when one ends badly."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from moelaws.spec.errors import UserError
from moelaws.training.device import threads
from moelaws.training.ranks import LACKED, LOST, MEETING, STARTED_BY
from moelaws.training.signals import stoppable

HALVINGS = 20  # the most halvings of what is computed at a time
_LOOK = 0.1  # seconds between two looks at whether a process has ended


@dataclass(frozen=True)
class Node:
    """One of the nodes whose processes train a run together, by default the only one."""

    number: int = 0
    count: int = 1
    host: str = ""  # of several nodes: where all processes meet
    port: int = 0


def node_of(environment: Mapping[str, str]) -> Node:
    """Returns this node's place in a Slurm step with one task per node.

    Raises UserError if a step of several nodes does not have one task on each.
    """
    count = int(environment.get("SLURM_STEP_NUM_NODES", "1"))
    if count == 1:
        return Node()
    tasks = environment.get("SLURM_STEP_NUM_TASKS")
    if tasks != str(count):
        raise UserError(
            f"this step of Slurm has {tasks} tasks on {count} nodes; start one on each: "
            "srun --ntasks-per-node=1"
        )
    names = ["scontrol", "show", "hostnames", environment["SLURM_STEP_NODELIST"]]
    first = subprocess.run(names, capture_output=True, text=True, check=True).stdout.split()[0]
    port = 20000 + (int(environment["SLURM_JOB_ID"]) + int(environment["SLURM_STEP_ID"])) % 10000
    return Node(int(environment["SLURM_NODEID"]), count, first, port)


def across_nodes(words: Sequence[str], nodes: int, config: str) -> NoReturn:
    """Replaces this process by srun, which runs Python with ``words`` on each of ``nodes`` nodes.

    ``config`` is the standard input. Raises UserError if there is no srun.
    """
    file = os.memfd_create("moelaws")
    os.write(file, config.encode())
    os.lseek(file, 0, os.SEEK_SET)
    os.dup2(file, 0)
    step = [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
    if cores := os.environ.get("SLURM_CPUS_PER_TASK"):
        step.append(f"--cpus-per-task={cores}")
    # The new step must share the resources of the job with Snakemake's own step, and must not see
    # the variables of that step, such as its one node.
    step += ["--overlap", "--kill-on-bad-exit=1"]
    known = {"SLURM_JOB_ID", "SLURM_CONF"}
    environment = {k: v for k, v in os.environ.items() if k[:6] != "SLURM_" or k in known}
    try:
        os.execvpe("srun", ["srun", *step, sys.executable, *words], environment)
    except FileNotFoundError:
        raise UserError("--nodes is for a job of Slurm, and there is no srun here") from None


def together(words: Sequence[str], config: str, devices: int, node: Node) -> int:
    """Runs Python with ``words`` as one process for each of ``devices``, with torchrun's variables.

    Each reads ``config`` from its standard input. ``devices`` counts those of all nodes. If a
    process lacked memory and can try a smaller micro-batch, all start again. Other nodes cannot
    know why it ended, so there the processes always start again, and end if its node does not.
    Returns the exit code: 0, or that of the process that ended first. If that one was killed, a
    line on standard error says so.

    Raises UserError if the nodes cannot have equal numbers of devices.
    """
    if devices % node.count:
        raise UserError(f"{devices} devices cannot be shared equally by {node.count} nodes")
    here = devices // node.count
    os.environ["OMP_NUM_THREADS"] = str(max(1, threads() // here))  # the processes share the cores
    os.environ[STARTED_BY] = str(os.getpid())
    os.environ |= {"WORLD_SIZE": str(devices), "LOCAL_WORLD_SIZE": str(here)}
    code = LACKED
    for start in range(HALVINGS):
        code = _once(words, config, devices, node, start)
        if code == LACKED:
            print("moelaws: out of memory; all processes start again, with less", file=sys.stderr)
        elif code != LOST or node.count == 1:
            break
        else:
            print("moelaws: starting again, for it may have lacked memory", file=sys.stderr)
    return code


def _once(words: Sequence[str], config: str, devices: int, node: Node, start: int) -> int:
    # A file without a name, which ends with its processes and which nobody else can open
    file = os.memfd_create("moelaws")
    meeting = f"/proc/self/fd/{file}"
    if node.count > 1:  # each start has its own port, for another node may still be at the last one
        meeting = f"{node.host}:{node.port + start}"
    processes: dict[int, subprocess.Popen[str]] = {}
    failed: dict[int, int] = {}
    with stoppable() as stop:
        try:
            for local in range(devices // node.count):
                rank = node.number * devices // node.count + local
                place = {"RANK": str(rank), "LOCAL_RANK": str(local), MEETING: meeting}
                processes[rank] = process = subprocess.Popen(
                    [sys.executable, *words], env={**os.environ, **place}, pass_fds=[file],
                    stdin=subprocess.PIPE, text=True, start_new_session=True,
                )  # fmt: skip
                assert process.stdin
                with process.stdin:
                    process.stdin.write(config)
            while not failed and stop.signum is None:
                codes = {rank: process.poll() for rank, process in processes.items()}
                failed = {rank: code for rank, code in codes.items() if code}
                if None not in codes.values():
                    break
                time.sleep(_LOOK)
            for process in processes.values():
                process.terminate()
            for process in processes.values():
                process.wait()  # it may write a checkpoint first
        finally:
            for process in processes.values():
                process.kill()
            os.close(file)
    if stop.signum is not None and any(process.returncode for process in processes.values()):
        return 128 + stop.signum
    return _exit_code(failed, devices) if failed else 0


def _exit_code(codes: Mapping[int, int], devices: int) -> int:
    """Returns the exit code of the process that is the cause, and prints it if it was killed."""
    ended = (LOST, -signal.SIGTERM)  # codes of processes that ended because another one did
    rank = min(codes, key=lambda rank: (codes[rank] in ended, codes[rank] > 0, rank))
    code = codes[rank]
    if code == LOST:
        print("moelaws: a process of this run ended on another node", file=sys.stderr)
    if code >= 0:
        return code
    name = signal.Signals(-code).name
    print(
        f"moelaws: process {rank} of the {devices} that train this run was ended by {name}, and so "
        "were the others; call again to continue from the last checkpoint",
        file=sys.stderr,
    )
    return 128 - code
