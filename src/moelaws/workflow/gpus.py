"""This machine's GPUs as Snakemake shares them out: a resource of 24 shares for each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from moelaws.accounting.cost import H100, estimate
from moelaws.gpus.listing import Chosen, Gpu, list_gpus
from moelaws.gpus.slots import SHARES
from moelaws.spec.errors import UserError
from moelaws.workflow.requests import Requests

# With `auto`: a run's memory is more than its tensors' by what CUDA and its libraries take of each
# process and by what the allocator leaves unused. Assumed, not measured.
PROCESS_MEMORY, UNUSED = 1.5e9, 1.25
MOST_RUNS = 8  # on one GPU, by `auto`: they share its time too


def gpus_here(chosen: Chosen) -> tuple[Gpu, ...]:
    """Returns the ``chosen`` GPUs of this machine; none where they cannot be listed."""
    try:
        return list_gpus(chosen)
    except UserError:  # a dry run elsewhere goes on without
        return ()


@dataclass(frozen=True)
class GpuShares:
    """How the runs of ``requests`` share the GPUs that are ``chosen``.

    ``gpus`` are those, as they were listed: none where this machine does not see them.
    """

    requests: Requests
    chosen: Chosen
    gpus: tuple[Gpu, ...] = ()

    @property
    def options(self) -> str:
        """The option by which ``moelaws train`` takes one of the GPUs."""
        chosen = self.chosen
        return f"--gpus {chosen if chosen == 'all' else ','.join(map(str, chosen))}"

    @property
    def total(self) -> int:
        """Returns the shares of all GPUs; of one where none is found, for a dry run."""
        return SHARES * max(1, len(self.gpus))

    def of(self, run: str) -> int:
        """Returns the shares that ``run`` takes: of one GPU, or all of several."""
        project = self.requests.project
        if (devices := self.requests.devices(run)) > 1:
            return SHARES * devices
        if project.runs_per_gpu != "auto":
            return SHARES // project.runs_per_gpu
        memory = min((gpu.memory for gpu in self.gpus), default=project.gpu_memory * 1e9)
        config = self.requests.runs[run].config
        need = PROCESS_MEMORY + UNUSED * estimate(config, H100).device_bytes
        fewest = SHARES // MOST_RUNS
        # A driver that tells no memory leaves each run a GPU.
        return min(SHARES, max(fewest, math.ceil(SHARES * need / memory))) if memory else SHARES

    def threads(self, run: str, cores: int) -> int:
        """Returns the threads of ``run``: its part of the machine's ``cores``."""
        return max(1, cores * self.of(run) // self.total)

    def words(self, runs: Iterable[str]) -> str:
        """Returns which GPUs train ``runs``, and how many at a time, as a line for the user.

        Raises:
            UserError: where they cannot be listed, or are too few for one of the runs.
        """
        gpus = self.gpus or list_gpus(self.chosen)
        devices, largest = max(((self.requests.devices(run), run) for run in runs), default=(1, ""))
        if devices > len(gpus):
            raise UserError(
                f"run {largest} is to train on {devices} GPUs together, and {len(gpus)} can be "
                "used here; devices_per_run in config/config.yaml says how many, and auto takes "
                "as many as its memory needs by estimate"
            )
        names = ", ".join(
            f"{gpu.index} ({gpu.name}{', in use by now' if gpu.is_used else ''})" for gpu in gpus
        )
        number = self.requests.project.runs_per_gpu
        each = "as many as fit by estimate" if number == "auto" else f"{number} at a time"
        together = "" if devices == 1 else f"; a run that one GPU does not hold: on up to {devices}"
        return f"trains on GPU {names}; runs on each: {each}{together}"
