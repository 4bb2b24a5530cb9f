"""RunSummary, the result of one training. A study's table is made of these."""

from pathlib import Path
from typing import Literal

from moelaws.files.atomic import read_json
from moelaws.files.layout import CONFIG
from moelaws.files.seal import DamagedError
from moelaws.spec.base import Frozen, Whole, parse
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig

Status = Literal["completed", "diverged", "out_of_memory"]


class Balance(Frozen):
    """The experts' load on the validation set, averaged over the layers with experts.

    The definitions are those of sec 5, sectional: standard deviations are of the population, and
    capacity = capacity_factor * tokens * k / E.
    """

    cv: float  # coefficient of variation of tokens per expert
    entropy: float  # H(p) / ln E, 1 when uniform
    kl: float  # KL(p || uniform) = ln E - H(p), nats
    overflow: float  # fraction of assignments beyond capacity
    unused: float  # fraction of capacity left empty
    capacity_factor: float
    never_used: Whole  # experts without one token, summed over layers
    dropped: float | None = None  # fraction of assignments, if the run has a capacity


class RunSummary(Frozen):
    """The result of one run. Losses are in nats per token."""

    run_id: str
    status: Status
    loss: float | None  # validation loss; None unless completed
    loss_se: float | None  # its standard error, clustered by document
    loss_beyond: float | None = None  # beyond the context, if longer sequences were evaluated
    bits_per_byte: float | None
    train_loss: float | None  # mean over the last tenth of the steps
    steps: Whole  # optimizer steps done
    tokens: Whole  # training tokens seen
    epochs: float  # passes over the training text
    balance: Balance | None  # None for dense models
    # Of the steps, those that another run of its trunk trained
    shared_steps: Whole = 0
    # Training FLOPs of all steps (Eq 9, sparsity), and of those that this run trained itself; None
    # in records from before they were counted
    flops: float | None = None
    flops_spent: float | None = None
    wall_seconds: float  # training and evaluation, summed over resumptions and shared steps
    shared_seconds: float = 0.0  # those of the shared steps
    tokens_per_second: float  # of the training loop
    peak_memory_bytes: Whole
    message: str = ""


def read_summary(path: Path) -> RunSummary:
    return parse(RunSummary, read_json(path), path, strict=True)


def finished(folder: Path, config: RunConfig) -> RunSummary | None:
    """Returns the summary of a run that is done, or None if there is something to train.

    A run that lacked memory is not done. The record of another run, or a broken one, is refused.
    """
    own, result = folder / CONFIG, folder / "summary.json"
    if not (own.exists() and result.exists()):
        return None
    try:
        run_id = parse(RunConfig, read_json(own), own).run_id
        summary = read_summary(result)
    except DamagedError:
        raise
    except UserError as error:  # a power failure may leave such a file
        raise UserError(f"{error}; delete {folder} to train the run again") from None
    if other := {run_id, summary.run_id} - {config.run_id}:
        raise UserError(
            f"{folder} holds run {min(other)}, not {config.run_id}; choose another folder"
        )
    return None if summary.status == "out_of_memory" else summary
