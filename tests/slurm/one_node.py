"""A Slurm of one node on this machine, for as long as a command runs.

    python tests/slurm/one_node.py [--install] COMMAND [ARGUMENT ...]

It needs root and Debian's packages slurm-wlm and munge; --install gets them with apt-get. Without
them it says so and ends with exit code 77. Keys, sockets, ports, logs and state are its own, in a
temporary folder, so that a Slurm which this machine may already have stays as it is.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

SKIPPED = 77
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol")
# Two partitions of one node: a job in `urgent` drives one in `normal` back into the queue.
CONFIGURATION = """
ClusterName=one_node
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
MpiDefault=none
ReturnToService=2
MinJobAge=600
KillWait=20
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=16000 Gres=gpu:1
PartitionName=normal Nodes={host} Default=YES PriorityTier=1
PartitionName=urgent Nodes={host} PriorityTier=9
"""


def lacking() -> str:
    """What this machine lacks for a Slurm; empty if nothing."""
    absent = [name for name in PROGRAMS if not _which(name)]
    if os.geteuid() != 0 or absent:
        why = f" (no {', '.join(absent)})" if absent else ""
        return f"skipped: needs root and the packages slurm-wlm and munge{why}"
    return ""


@contextmanager
def one_node() -> Iterator[dict[str, str]]:
    """Runs the daemons while the block runs; yields the environment that leads to them."""
    with tempfile.TemporaryDirectory(prefix="one_node_slurm_") as name, ExitStack() as stack:
        folder = Path(name)
        # The authentication daemon refuses what others may write, clients must reach the socket.
        folder.chmod(0o755)
        for part in ("bin", "munge", "state", "spool"):
            (folder / part).mkdir(mode=0o755)
        host = socket.gethostname().partition(".")[0]
        file = folder / "slurm.conf"
        controller, node = _free_ports(2)
        text = CONFIGURATION.format(host=host, folder=folder, controller=controller, node=node)
        file.write_text(text)
        (folder / "gres.conf").write_text("Name=gpu File=/dev/null\n")
        # Snakemake drops SLURM_* from the environment of the srun inside a job: this one knows it.
        srun = folder / "bin/srun"
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={file} exec {_which("srun")} "$@"\n')
        srun.chmod(0o755)
        # Started from a job of another Slurm, its variables would mislead the clients.
        foreign = ("SLURM", "SBATCH_", "SRUN_")
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(foreign)},
            "SLURM_CONF": str(file),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        }
        key = folder / "munge/key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)

        def daemon(*words: str) -> None:
            log = stack.enter_context((folder / f"{words[0]}.out").open("w"))
            # A session of its own: Ctrl-C is for the command, the daemons are ended after it.
            process = subprocess.Popen(
                [_which(words[0]), *words[1:]],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            stack.callback(_end, process)

        munge = [f"--{it}-file={folder}/munge/{it}" for it in ("key", "pid", "log", "seed")]
        daemon("munged", "--foreground", "--force", f"--socket={folder}/munge/socket", *munge)
        _wait_for(lambda: (folder / "munge/socket").exists(), "munged", folder)
        daemon("slurmctld", "-D", "-f", str(file))
        daemon("slurmd", "-D", "-f", str(file), "-N", host)
        _wait_for(lambda: _ask(environment, "sinfo", "-ho", "%t").startswith("idle"), "", folder)
        stack.callback(_clear, environment)
        yield environment


def _clear(environment: dict[str, str]) -> None:
    """Cancels the jobs, which outlive the daemons otherwise."""
    _ask(environment, "scancel", "--state=pending")
    _ask(environment, "scancel", "--state=running")
    deadline = time.monotonic() + 60
    while _ask(environment, "squeue", "-h") and time.monotonic() < deadline:
        time.sleep(0.5)


def _ask(environment: dict[str, str], *words: str) -> str:
    run = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    return run.stdout.strip()


def _wait_for(condition: Callable[[], bool], what: str, folder: Path) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            logs = [f"{log.name}: {log.read_text()[-2000:]}" for log in folder.glob("*.out")]
            raise RuntimeError("\n".join([f"no answer from {what or 'Slurm'}", *logs]))
        time.sleep(0.2)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _which(program: str) -> str:
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or ""


def main(words: list[str]) -> int:
    if words[:1] == ["--install"]:
        words = words[1:]
        if os.geteuid() == 0 and lacking():
            quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            for command in (["update"], ["install", "-y", "slurm-wlm", "munge"]):
                subprocess.run(["apt-get", "-q", *command], env=quiet, check=True)
    if not words:
        print(__doc__, file=sys.stderr)
        return 2
    if why := lacking():
        print(why)
        return SKIPPED
    # A termination takes the daemons down, too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with one_node() as environment:
        return subprocess.run(words, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
