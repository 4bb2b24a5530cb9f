"""NVIDIA's Multi-Process Service (MPS), by which runs on one GPU compute at the same time."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONTROL = "nvidia-cuda-mps-control"
PIPES, LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
# A shell starts the service and ends it when its own standard input ends. The kernel ends that
# with the process that holds the other side, even if it is killed.
_KEEPER = f"""
trap 'rm -rf "${PIPES}"' EXIT
{CONTROL} -d </dev/null >&2 || exit
echo started
read -r end
echo quit | {CONTROL} >&2
"""


def is_running() -> bool:
    """Returns whether there is a service that this process's children find."""
    return (Path(os.environ.get(PIPES, "/tmp/nvidia-mps")) / "control").exists()


@contextmanager
def service() -> Iterator[tuple[dict[str, str], str]]:
    """Starts a service of this process's own while the block runs, unless there is one already.

    Yields the variables by which processes find it, and what to say of MPS. Its folder is private.
    """
    if is_running():
        yield {}, "runs"
        return
    folder = tempfile.mkdtemp(prefix="moelaws-mps-")
    variables = dict.fromkeys((PIPES, LOGS), folder)
    environment = {**os.environ, **variables}
    # Processes name GPUs by UUID, or else by numbers that it would count anew among its own.
    if not environment.get("CUDA_VISIBLE_DEVICES", "").startswith("GPU-"):
        environment.pop("CUDA_VISIBLE_DEVICES", None)
    keeper = subprocess.Popen(
        _KEEPER, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
        start_new_session=True,
    )  # fmt: skip
    with keeper:
        assert keeper.stdout
        if keeper.stdout.readline():
            yield variables, "was started for them"
        else:
            yield {}, f"does not run, so they lose time: {CONTROL} does not start it"
