"""What the training of each run asks for: devices, nodes, memory and time, by estimate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from moelaws.accounting.cost import MANY, Cost, device_of, placed
from moelaws.gpus.listing import Gpu
from moelaws.grids.expand import Run
from moelaws.spec.project import Project

SLACK = 10  # minutes of a job, beside its trainings
LONGEST = 2880  # minutes of a job: a run that is cut off only resumes


@dataclass(frozen=True)
class Requests:
    """The requests of ``runs`` (by id) on the device of ``project``.

    ``gpus`` are those of this machine, where they train; else ``project`` tells their memory.
    """

    project: Project
    runs: Mapping[str, Run]
    gpus: tuple[Gpu, ...] = ()

    @cached_property
    def costs(self) -> dict[str, Cost]:
        """The estimated cost of each run, on as many devices as it takes."""
        told = [gpu.nominal_gb for gpu in self.gpus if gpu.memory]
        device = device_of(self.project.device, min(told, default=self.project.gpu_memory))
        per_run, most = self.project.devices_per_run, len(self.gpus) or MANY
        return {key: placed(run.config, device, per_run, most) for key, run in self.runs.items()}

    @property
    def any_on_several(self) -> bool:
        """Whether several devices train some run together."""
        # On a CPU only where the project says so: nothing is estimated then for nothing.
        auto = self.project.device == "cpu" and self.project.devices_per_run == "auto"
        return not auto and any(cost.devices > 1 for cost in self.costs.values())

    def devices(self, run: str) -> int:
        """Returns how many devices train a run."""
        return self.costs[run].devices

    def nodes(self, run: str) -> int:
        """Returns how many nodes of a cluster they are on, as many on each."""
        devices = self.devices(run)
        if self.project.device == "cpu":
            return 1
        fewest = math.ceil(devices / self.project.gpus_per_node)
        return next(n for n in range(fewest, devices + 1) if devices % n == 0)

    def memory_mb(self, run: str, attempt: int) -> int:
        """Returns the memory to ask for on each node, in MB: more than estimated, and doubled at
        each retry."""
        # In a Slurm job two processes of Snakemake, 165 MB each, share it with the trainer.
        estimated = self.costs[run].host_bytes / self.nodes(run)
        return (400 + int(estimated / 1e6 * 1.5)) * int(2 ** (attempt - 1))

    def minutes(self, run: str, attempt: int, slack: bool) -> int:
        """Returns the minutes to ask for: generous, for nodes differ, and doubled at each retry.

        ``slack`` is that of the run's job, which one run of a pack asks for.
        """
        minutes = SLACK * slack + max(1, int(self.costs[run].seconds / 20))
        return min(LONGEST, minutes * int(2 ** (attempt - 1)))

    def seconds_alone(self, run: str) -> float:
        """Returns the seconds of a run that one device trains; infinity for any other."""
        cost = self.costs[run]
        return cost.seconds if cost.devices == 1 else math.inf
