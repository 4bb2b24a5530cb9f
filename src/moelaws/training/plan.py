"""The plan of a training: this machine's options, checked, and where the run's files lie."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from moelaws.files.layout import Results
from moelaws.model.backends import Backend, choose_backend
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.training.device import choose_device
from moelaws.training.ranks import ALONE, Ranks
from moelaws.training.trunk import Trunk

Log = Callable[[str], None]


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class TrainingOptions:
    """How this machine trains a run. The options are not part of the run's identity."""

    device: str = "auto"  # auto, cpu or cuda
    backend: str = "auto"  # of the routed experts: auto or a name in model.backends.BACKENDS
    # The sequences that a device computes at a time, a multiple of the balance group; None is its
    # whole part of the batch. It is halved if memory lacks, and stays so after a resumption.
    micro_batch: int | None = None
    # Whether to keep the final weights; a run that is done without them is then trained again
    keep_weights: bool = False
    keep_steps: tuple[int, ...] = ()  # the steps after which weights are kept, too
    deterministic: bool = False  # the same bits again on CUDA, too; on the CPU they always are
    progress: bool = False  # whether to report the progress on standard error
    checkpoint_seconds: float = 30.0  # wall time between checkpoints, or more where they are slow
    history_seconds: float = 10.0  # wall time between writings of the history so far
    lengths: tuple[int, ...] = ()  # the steps of the runs with which it trains its trunk


DEFAULTS = TrainingOptions()


@dataclass(frozen=True)
class RunFolders:
    record: Path
    weights: Path
    checkpoint: Path  # a file in a folder of its own

    @classmethod
    def of(cls, results: Results, run_id: str, out: Path | None = None) -> "RunFolders":
        """Returns the places in ``results``, or below ``out``, a folder for this run alone."""
        if out:
            return cls(out, out / "weights", out / "checkpoint" / "latest.json")
        checkpoint = results.checkpoint(run_id) / "latest.json"
        return cls(results.run(run_id), results.weights(run_id), checkpoint)


@dataclass(frozen=True)
class TrainingPlan:
    """All that the training of a run needs; the device in its options is not ``auto``."""

    config: RunConfig
    options: TrainingOptions
    backend: Backend
    reason: str  # why this back end
    corpus: Path  # folder of the prepared corpus
    folders: RunFolders
    log: Log  # takes lines about this run
    ranks: Ranks = ALONE
    trunk: Trunk | None = None
    # Raises TakenOver if another trainer took the run; in the process that holds its lock
    check_lock: Callable[[], None] = lambda: None


def checked(
    config: RunConfig, options: TrainingOptions, devices: int = 1
) -> tuple[TrainingOptions, Backend, str]:
    """Returns the options with the device that ``auto`` stands for, the back end, and why that one.

    Raises UserError for a device, back end, micro-batch or number of devices that cannot be used.
    """
    options = replace(options, device=choose_device(options.device))
    if options.deterministic and options.backend == "megablocks":
        raise UserError("back end megablocks promises no equal bits; leave out --deterministic")
    if options.deterministic and options.backend == "auto":
        options = replace(options, backend="torch")
    micro_batch, smallest = options.micro_batch, config.smallest_micro_batch
    if micro_batch is not None and (micro_batch % smallest or not 0 < micro_batch <= config.batch):
        raise UserError(
            f"micro-batch is {micro_batch}; it must be a multiple of {smallest} and at most "
            f"batch = {config.batch}: the balance loss of a model with experts is measured over "
            "balance_group sequences, so only a smaller balance_group allows less"
        )
    check_devices(devices, config)
    return options, *choose_backend(options.backend, config.model, options.device, config.precision)


def check_devices(devices: int, config: RunConfig) -> None:
    """Raises UserError if a batch cannot be divided among this many devices."""
    if config.groups < devices:
        units = "balance groups" if config.smallest_micro_batch > 1 else "sequences"
        raise UserError(
            f"{devices} devices are too many for run {config.run_id}: each takes whole {units} of "
            f"a batch, which has {config.groups}"
        )
