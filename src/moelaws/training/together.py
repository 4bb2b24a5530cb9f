"""Several processes for one run. torchrun's agent starts them, and ends all when one ends badly."""

import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from moelaws.spec.errors import UserError
from moelaws.training.device import threads
from moelaws.training.ranks import LACKED, LOST, STARTED_BY

SAVING = 24 * 3600  # seconds that processes have to write a checkpoint once they must stop
HALVINGS = 20  # the most halvings of what is computed at a time
AGAIN = 120  # seconds to wait for the other nodes at a new start, which takes them only seconds


@dataclass(frozen=True)
class Node:
    """One of the nodes whose processes train a run together, by default the only one."""

    number: int = 0
    count: int = 1
    meeting: str = "localhost:0"  # host and port where all processes meet
    job: str = "moelaws"


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
    step = f"{environment['SLURM_JOB_ID']}.{environment['SLURM_STEP_ID']}"
    names = ["scontrol", "show", "hostnames", environment["SLURM_STEP_NODELIST"]]
    first = subprocess.run(names, capture_output=True, text=True, check=True).stdout.split()[0]
    port = 20000 + (int(environment["SLURM_JOB_ID"]) + int(environment["SLURM_STEP_ID"])) % 10000
    return Node(int(environment["SLURM_NODEID"]), count, f"{first}:{port}", step)


def across_nodes(words: Sequence[str], nodes: int, config: str) -> NoReturn:
    """Replaces this process by srun, which runs Python with ``words`` on each of ``nodes`` nodes.

    ``config`` is the standard input. Raises UserError if there is no srun.
    """
    with tempfile.TemporaryFile() as file:
        file.write(config.encode())
        file.seek(0)
        os.dup2(file.fileno(), 0)
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


def together(words: Sequence[str], devices: int, node: Node) -> int:
    """Runs Python with ``words`` as one process for each of ``devices``, with torchrun's variables.

    ``devices`` counts those of all nodes. If a process lacked memory and can try a smaller
    micro-batch, all start again. Other nodes cannot know why it ended, so there the processes
    always start again, and end if its node does not. Returns the exit code: 0, or that of the
    process that ended first. If that one was killed, a line on standard error says so.

    Raises UserError if the nodes cannot have equal numbers of devices, or do not meet.
    """
    if devices % node.count:
        raise UserError(f"{devices} devices cannot be shared equally by {node.count} nodes")
    here = devices // node.count
    os.environ["OMP_NUM_THREADS"] = str(max(1, threads() // here))  # the processes share the cores
    os.environ[STARTED_BY] = str(os.getpid())
    code = LACKED
    for start in range(HALVINGS):
        code = _once(words, devices, node, start)
        if code == LACKED:
            print("moelaws: out of memory; all processes start again, with less", file=sys.stderr)
        elif code != LOST or node.count == 1:
            break
        else:
            print("moelaws: starting again, for it may have lacked memory", file=sys.stderr)
    return code


def _once(words: Sequence[str], devices: int, node: Node, start: int) -> int:
    from torch.distributed import DistError
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for name in logging.root.manager.loggerDict:
        if name.startswith("torch.distributed.elastic"):  # a line of ours replaces its warnings
            logging.getLogger(name).setLevel(logging.CRITICAL)
    host, _, port = node.meeting.rpartition(":")
    several = {"rank": node.number, **({"timeout": AGAIN} if start else {})}
    with tempfile.TemporaryDirectory(prefix="moelaws-") as folder:
        config = LaunchConfig(
            min_nodes=node.count,
            max_nodes=node.count,
            nproc_per_node=devices // node.count,
            run_id=node.job,
            rdzv_backend="c10d" if node.count == 1 else "static",
            # Each start has its own port, for another node may still be at the one before.
            rdzv_endpoint=node.meeting if node.count == 1 else f"{host}:{int(port) + start}",
            rdzv_configs={} if node.count == 1 else several,
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(folder),
            shutdown_timeout=SAVING,
        )
        try:
            elastic_launch(config, sys.executable)(*words)
        except ChildFailedError as error:
            codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
            return _exit_code(codes, devices)
        except SignalException as error:
            return 128 + error.sigval
        except DistError as error:
            if node.count == 1:
                raise
            why = str(error).partition("\n")[0]
            raise UserError(
                f"the nodes of this run did not meet at {config.rdzv_endpoint}; another one may "
                f"tell more ({why})"
            ) from error
    return 0


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
