"""How a run is to be trained, as far as that is known before it is locked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from moelaws.model.backends import Backend
from moelaws.spec.run import RunConfig
from moelaws.training.ranks import ALONE, Ranks
from moelaws.training.record import RunFolders

Log = Callable[[str], None]


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class TrainingOptions:
    """How this machine trains a run. The options are not part of the run's identity."""

    device: str = "auto"  # auto, cpu or cuda
    backend: str = "auto"  # of the routed experts: auto or a name in model.backends.BACKENDS
    # Sequences that a device computes at a time, a multiple of the balance group; None is all of
    # its part of the batch. Halved where memory lacks; a resumed run takes no more than before.
    micro_batch: int | None = None
    # Keep the final weights of a completed run; a run that is done without them is trained again.
    keep_weights: bool = False
    keep_steps: tuple[int, ...] = ()  # and those after these steps, where weights are kept
    progress: bool = False  # report the progress on standard error
    checkpoint_seconds: float = 30.0  # wall time between checkpoints
    history_seconds: float = 10.0  # wall time between writings of the history so far


DEFAULTS = TrainingOptions()


@dataclass(frozen=True)
class TrainingPlan:
    """What is known of a training before its run is locked; its device is not ``auto``."""

    config: RunConfig
    options: TrainingOptions
    backend: Backend
    reason: str  # why that back end
    corpus: Path  # folder of the prepared corpus
    folders: RunFolders
    log: Log
    ranks: Ranks = ALONE
