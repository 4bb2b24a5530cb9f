"""RunConfig: all that decides the result of one training, and nothing else.

Device, back end, paths and names are not here. A new field must have a default and a default must
never change: ``run_id`` then keeps every run that was ever trained (golden ids are tested).
"""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from moelaws.spec.base import Count, Fraction, Frozen, NonNegative, Positive, Rate, Seed, Share
from moelaws.spec.corpus import Corpus
from moelaws.spec.model import Model, MoE


class AdamW(Frozen):
    """AdamW with decoupled decay.

    ``scale_free`` decouples the decay from the peak learning rate too: a step shrinks weights by
    ``weight_decay * lr_t / lr`` (the sparsity paper) instead of ``weight_decay * lr_t``.
    """

    lr: Rate  # peak learning rate
    beta1: Share = 0.9
    beta2: Share = 0.95
    eps: Positive = 1e-8
    weight_decay: NonNegative = 0.1
    scale_free: bool = False
    clip: NonNegative = 1.0  # global gradient norm; 0 is off


class Schedule(Frozen):
    """Linear warm-up, then cosine, or constant and decay (WSD); shares of all steps."""

    kind: Literal["cosine", "wsd"] = "cosine"
    warmup: Fraction = 0.02
    decay: Fraction = 0.1  # WSD: share of the steps that decay exponentially
    final: Fraction = 0.1  # last learning rate as a share of the peak

    @model_validator(mode="after")
    def _final_reachable(self) -> Schedule:
        if self.kind == "wsd" and self.final == 0:
            raise ValueError("final = 0 cannot be reached by wsd's exponential decay")
        return self


class Evaluation(Frozen):
    """The held-out measurement at the end; ``sequences`` whole contexts, the same for all runs."""

    sequences: Count = 512


class RunConfig(Frozen):
    """One training of one model. ``run_id`` is the identity that every record goes by."""

    model: Model
    corpus: Corpus
    steps: Count  # optimizer steps
    batch: Count  # sequences a step
    optimizer: AdamW
    schedule: Schedule = Schedule()
    balance_group: Count  # sequences over which the load-balancing loss is measured; divides batch
    precision: Literal["fp32", "bf16"] = "fp32"
    evaluation: Evaluation = Evaluation()
    max_epochs: Positive = 1.0  # passes over the training text that are allowed
    seed: Seed = 0  # of the initial weights and the order of the data

    @model_validator(mode="after")
    def _consistent(self) -> RunConfig:
        if self.batch % self.balance_group:
            raise ValueError(
                f"balance_group = {self.balance_group} must divide batch = {self.batch}"
            )
        if self.corpus.vocab_size != self.model.vocab_size:
            raise ValueError(
                f"model.vocab_size = {self.model.vocab_size} differs from "
                f"corpus.vocab_size = {self.corpus.vocab_size}"
            )
        return self

    @property
    def run_id(self) -> str:
        """First 16 hex digits of SHA-256 over the canonical JSON."""
        return self.fingerprint()

    @property
    def tokens(self) -> int:
        """D: training tokens."""
        return self.steps * self.batch * self.model.context

    @property
    def smallest_micro_batch(self) -> int:
        """Sequences that are computed together whatever the memory: a balance group, for its loss
        is not linear across parts; any one of a dense model."""
        return self.balance_group if isinstance(self.model.ffn, MoE) else 1

    @property
    def groups(self) -> int:
        """How many of these a batch has: each device that trains has at least one."""
        return self.batch // self.smallest_micro_batch
