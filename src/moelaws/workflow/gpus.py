"""This machine's GPUs as Snakemake shares them out: a resource of 24 shares for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from moelaws.accounting.cost import H100, estimate, placed
from moelaws.gpus.listing import Gpu, list_gpus
from moelaws.gpus.slots import SHARES
from moelaws.grids.expand import Run
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project

# With `auto`: a run's memory is more than its tensors' by what CUDA and its libraries take of each
# process and by what the allocator leaves unused. Assumed, not measured.
PROCESS_MEMORY, UNUSED = 1.5e9, 1.25
MOST_RUNS = 8  # on one GPU, by `auto`: they share its time too


@dataclass(frozen=True)
class GpuShares:
    """How the trainings of ``runs`` (by id) share the GPUs that ``project`` chooses.

    ``elsewhere``: each job of a cluster has one GPU, which this machine does not see.
    """

    project: Project
    runs: Mapping[str, Run]
    elsewhere: bool = False

    @cached_property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that train; none where they cannot be listed, as for a dry run elsewhere."""
        with suppress(UserError):
            if self.elsewhere:
                return ()
            return list_gpus(self.project.gpus)
        return ()

    @property
    def options(self) -> str:
        """The option by which ``moelaws train`` takes one of the GPUs."""
        chosen = self.project.gpus
        return f"--gpus {chosen if chosen == 'all' else ','.join(map(str, chosen))}"

    @property
    def total(self) -> int:
        """Returns the shares of all GPUs; of one where none is found, for a dry run."""
        return SHARES * max(1, len(self.gpus))

    def devices(self, run: str) -> int:
        """Returns how many GPUs train ``run`` together."""
        return placed(self.runs[run].config, H100, self.project.devices_per_run).devices

    def of(self, run: str) -> int:
        """Returns the shares that ``run`` takes: of one GPU, or all of several."""
        if (devices := self.devices(run)) > 1:
            return SHARES * devices
        if self.project.runs_per_gpu != "auto":
            return SHARES // self.project.runs_per_gpu
        memory = min((gpu.memory for gpu in self.gpus), default=H100.own_memory)
        need = PROCESS_MEMORY + UNUSED * estimate(self.runs[run].config, H100).device_bytes
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
        gpus = self.gpus or list_gpus(self.project.gpus)
        devices, largest = max(((self.devices(run), run) for run in runs), default=(1, ""))
        if devices > len(gpus):
            raise UserError(
                f"run {largest} is to train on {devices} GPUs together, and {len(gpus)} can be "
                "used here; devices_per_run in config/config.yaml says how many, and auto takes "
                "as many as its memory needs by estimate"
            )
        names = ", ".join(
            f"{gpu.index} ({gpu.name}{', in use by now' if gpu.is_used else ''})" for gpu in gpus
        )
        number = self.project.runs_per_gpu
        each = "as many as fit by estimate" if number == "auto" else f"{number} at a time"
        together = "" if devices == 1 else f"; a run that one GPU does not hold: on up to {devices}"
        return f"trains on GPU {names}; runs on each: {each}{together}"
