"""RunSummary: what one training found. The table of a study is made of these."""

from __future__ import annotations

from typing import Literal

from moelaws.spec.base import Frozen, Whole

Status = Literal["completed", "diverged", "out_of_memory"]


class Balance(Frozen):
    """Load of the experts on the validation set, averaged over the MoE layers.

    Definitions: MATH conventions of the sectional paper, sec 5: population standard deviation;
    capacity = capacity_factor * tokens * k / E.
    """

    cv: float  # coefficient of variation of tokens per expert
    entropy: float  # H(p) / ln E, 1 when uniform
    kl: float  # KL(p || uniform) = ln E - H(p), nats
    overflow: float  # share of assignments beyond capacity
    unused: float  # share of capacity left empty
    capacity_factor: float
    never_used: Whole  # experts without one token, summed over layers


class RunSummary(Frozen):
    """The result of one run. Losses are in nats per token."""

    run_id: str
    status: Status
    loss: float | None  # validation loss; None unless completed
    loss_se: float | None  # its standard error, clustered by document
    bits_per_byte: float | None
    train_loss: float | None  # mean over the last tenth of the steps
    steps: Whole  # optimizer steps done
    tokens: Whole  # training tokens seen
    epochs: float  # passes over the training text
    balance: Balance | None  # None for dense models
    wall_seconds: float  # training and evaluation, summed over resumptions
    tokens_per_second: float  # of the training loop
    peak_memory_bytes: Whole
    message: str = ""
