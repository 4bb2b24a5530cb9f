"""Which runs share a job, and what each job requests: devices, nodes, cores, memory and time."""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from moelaws.accounting.cost import MANY, Cost, device_of, placed, spent
from moelaws.gpus.listing import Gpu, list_gpus
from moelaws.grids.expand import Run
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project

Batch = Sequence[str]  # the runs of a job, by id

START = 2.0  # seconds that a run takes in addition to its training
BITS = 64  # of a run_id
SLACK = 10  # minutes that a job requests in addition to its trainings
LONGEST = 2880  # minutes of a job unless max_minutes says; a run cut off resumes in the next one


def batches_of(
    runs: Iterable[str],
    seconds: Callable[[str], float],
    longest: float,
    trunk: Callable[[str], str | None] = lambda run: None,
) -> dict[str, Batch]:
    """Returns the batches of one study's ``runs``, each of up to ``longest`` estimated seconds.

    A batch has the runs of one job. Its name is 16 hex digits of the SHA-256 of its run_ids.

    A batch that is too long is divided by a bit of the run_ids, again and again. So one more run
    changes only the batch that it falls into. A run that is too long is alone in its batch.
    ``seconds`` gives the estimate of a run's training, or infinity if it must be alone.
    Runs that have a ``trunk`` go by its digest in place of their ids, so that they are together.
    """
    groups: dict[str, list[str]] = {}
    for run in runs:
        groups.setdefault(trunk(run) or run, []).append(run)

    def divided(groups: Mapping[str, list[str]], bit: int) -> list[Batch]:
        runs = [run for group in groups.values() for run in group]
        if len(groups) <= 1 or sum(START + seconds(run) for run in runs) <= longest:
            return [runs] if runs else []
        halves = [{k: g for k, g in groups.items() if (int(k, 16) >> bit & 1) == x} for x in (0, 1)]
        return [runs for half in halves for runs in divided(half, bit - 1)]

    batches = divided(groups, BITS - 1)
    return {hashlib.sha256("\n".join(sorted(b)).encode()).hexdigest()[:16]: b for b in batches}


@dataclass(frozen=True)
class Requests:
    """The requests of batches of ``runs`` (by id) on the device of ``project``."""

    project: Project
    runs: Mapping[str, Run]
    here: bool = True  # whether jobs run on this machine and not on a cluster
    gpus: tuple[Gpu, ...] = ()  # this machine's; for a cluster's, ``project`` has the memory

    @property
    def cuda(self) -> bool:
        return self.project.device == "cuda"

    @cached_property
    def costs(self) -> dict[str, Cost]:
        """Returns the estimated cost of each run, without the steps that a shorter one trains."""
        # As sold: a card of 80 GB has 80 GiB, less what the driver takes.
        sold = [gpu.memory / 2**30 for gpu in self.gpus if gpu.memory]
        device = device_of(self.project.device, self.project)
        if sold:
            device = replace(device, own_memory=min(sold) * 1e9)
        per_run, max_devices = self.project.devices_per_run, len(self.gpus) or MANY
        own = spent([run.config for run in self.runs.values()])
        costs = (placed(config, device, per_run, max_devices) for config in own)
        return dict(zip(self.runs, costs, strict=True))

    def seconds(self, run: str) -> float:
        """Returns a run's part of the seconds of one device, and infinity if several train it."""
        cost = self.costs[run]
        return cost.device_seconds if cost.devices == 1 else math.inf

    def devices(self, runs: Batch) -> int:
        """Returns how many devices train each of the ``runs`` of a batch."""
        return max(self.costs[run].devices for run in runs)

    def nodes(self, runs: Batch) -> int:
        """Returns over how many nodes of a cluster these devices are spread equally."""
        if not self.cuda:
            return 1
        devices = self.devices(runs)
        fewest = math.ceil(devices / self.project.gpus_per_node)
        return next(n for n in range(fewest, devices + 1) if devices % n == 0)

    def job_gpus(self, runs: Batch) -> int:
        """Returns how many GPUs the job of a batch has."""
        several = self.devices(runs)
        if several > 1 or self.here:
            return several
        return min(self.project.gpus_per_job, len(runs))

    def runs_per_gpu(self, runs: Batch) -> int:
        """Returns how many of the batch's runs train on one GPU at a time."""
        return min(len(runs), *(self.costs[run].runs_at_once for run in runs))

    def workers(self, runs: Batch) -> int:
        """Returns how many of the batch's runs train at a time."""
        if not self.cuda or self.devices(runs) > 1:
            return 1
        return min(len(runs), self.job_gpus(runs) * self.runs_per_gpu(runs))

    def threads(self, runs: Batch, cores: int) -> int:
        """Returns the cores of a batch's job; with this machine's GPUs, its part of ``cores``."""
        if self.cuda and self.here and self.gpus:
            return max(1, cores * self.devices(runs) // len(self.gpus))
        if self.devices(runs) > 1:
            return self.devices(runs) // self.nodes(runs)
        return self.workers(runs)

    def memory_mb(self, runs: Batch, attempt: int) -> int:
        """Returns the MB to request on each node: more than estimated, and twice that per retry."""
        # In a Slurm job, two processes of Snakemake with 165 MB each share it with the trainer.
        nodes = self.nodes(runs)
        largest = sorted((self.costs[run].host_bytes / nodes for run in runs), reverse=True)
        estimated = sum(largest[: self.workers(runs)])
        most = 1e3 * (self.project.max_memory or math.inf)
        return int(min(most, (400 + int(estimated / 1e6 * 1.5)) * 2 ** (attempt - 1)))

    def minutes(self, runs: Batch, attempt: int) -> int:
        """Returns the minutes to request: many, because nodes differ, and doubled per retry."""
        alone: dict[str, float] = {}  # runs of a trunk wait for each other, so their times add up
        for run in runs:
            work = START / 20 + max(1, int(self.costs[run].seconds / 20))
            trunk = self.runs[run].config.trunk or run
            alone[trunk] = alone.get(trunk, 0.0) + work
        time = max(sum(alone.values()) / self.workers(runs), *alone.values())
        most = self.project.max_minutes or LONGEST
        return min(most, math.ceil(SLACK + time) * int(2 ** (attempt - 1)))

    def gpu_words(self, runs: Iterable[str]) -> str:
        """Returns a line for the user on which GPUs of this machine train ``runs``."""
        gpus = self.gpus or list_gpus(self.project.gpus)
        devices, largest = max(((self.costs[run].devices, run) for run in runs), default=(1, ""))
        if devices > len(gpus):
            raise UserError(
                f"run {largest} is to train on {devices} GPUs together, and {len(gpus)} can be "
                "used here; devices_per_run in config/config.yaml says how many, and auto takes "
                "as many as its memory needs by estimate"
            )
        names = ", ".join(
            f"{gpu.index} ({gpu.name}{', in use by now' if gpu.is_used else ''})" for gpu in gpus
        )
        return f"trains on GPU {names}"


def gpus_here(project: Project) -> tuple[Gpu, ...]:
    """Returns the GPUs of this machine that the project chooses, or none if none can be seen."""
    with suppress(UserError):  # a dry run on a machine without GPUs goes on
        return list_gpus(project.gpus)
    return ()
