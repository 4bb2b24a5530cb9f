"""Takes the GPUs of a command before CUDA starts, which then sees no others."""

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import click

from moelaws.cli.common import Value, option
from moelaws.gpus.listing import Chosen, Gpu, held, list_gpus

device_option = option("--device", "auto, cpu or cuda.", default="auto")
gpus_option = option(
    "--gpus",
    "Take as many of these GPUs as are needed, waiting until they are free: all, or "
    "nvidia-smi's numbers, such as 0,2. Without it CUDA chooses.",
    Value(
        "all|N,N,...",
        lambda text: text if text == "all" else tuple(map(int, text.split(","))),
        lambda chosen: True,
        "neither all nor numbers such as 0,2",
    ),
)


@contextmanager
def holding(chosen: Chosen | None, number: int) -> Iterator[tuple[Gpu, ...]]:
    """Holds ``number`` of the ``chosen`` GPUs while the block runs; none where None is chosen.

    Standard error says which they are, and for which the command waits.
    """
    if chosen is None:
        yield ()
        return
    log = partial(click.echo, err=True)
    with held(list_gpus(chosen), number, log) as gpus:
        for gpu in gpus:
            log(f"on GPU {gpu.index}: {gpu.name} ({gpu.uuid})")
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpu.uuid for gpu in gpus)
        yield gpus


@contextmanager
def worker_environments(
    gpus: Sequence[Gpu], workers: int, runs_per_gpu: int
) -> Iterator[list[dict[str, str]]]:
    """Yields the environment variables of each worker's processes: which GPU they see.

    The GPUs are those that are held, or else those that CUDA_VISIBLE_DEVICES names, as a cluster
    sets it for its jobs. A single worker sees all of them. If several share a GPU, MPS runs
    meanwhile.
    """
    from moelaws.gpus import mps  # most commands share no GPU
    from moelaws.records.provenance import GPU_FRACTION

    names = [gpu.uuid for gpu in gpus]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    names = [name for name in names or visible if name not in ("", "-1")]
    if workers == 1 or not names:
        yield [{} for _ in range(workers)]
        return
    with ExitStack() as stack:
        shared = {}
        if runs_per_gpu > 1:
            variables, state = stack.enter_context(mps.service())
            shared = {GPU_FRACTION: str(1 / runs_per_gpu), **variables}
            click.echo(f"{runs_per_gpu} runs on each GPU; CUDA MPS {state}", err=True)
        visible_to = itertools.islice(itertools.cycle(names), workers)
        yield [{"CUDA_VISIBLE_DEVICES": name, **shared} for name in visible_to]
