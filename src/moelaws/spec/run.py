"""RunConfig: all that decides the result of one training, and nothing else.

It holds no device, back end, path or name. A new field must have a default, and a default must
never change, so that every run that was ever trained keeps its ``run_id`` (golden ids are tested).
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from moelaws.spec.base import (
    BelowOne,
    Count,
    Fraction,
    Frozen,
    NonNegative,
    Positive,
    Rate,
    Seed,
    key_of,
)
from moelaws.spec.corpus import Corpus
from moelaws.spec.model import Model, MoE


class AdamW(Frozen):
    """AdamW with decoupled decay.

    ``scale_free`` decouples the decay from the peak learning rate, too: a step shrinks weights by
    ``weight_decay * lr_t / lr`` (the sparsity paper) instead of ``weight_decay * lr_t``.

    A number with a description has a column in the study's table (``tables.schema``).
    """

    kind: Literal["adamw"] = "adamw"
    lr: Rate  # peak learning rate
    beta1: BelowOne = Field(0.9, description="decay of AdamW's first moment")
    beta2: BelowOne = Field(0.95, description="decay of AdamW's second moment")
    eps: Positive = Field(1e-8, description="added to the root of AdamW's second moment")
    weight_decay: NonNegative = Field(0.1, description="decoupled decay of the weights")
    scale_free: bool = False
    clip: NonNegative = Field(1.0, description="largest global gradient norm; 0 clips nothing")


class Muon(AdamW):
    """Muon for the matrices of layers (Jordan et al., 2024), and AdamW for all other parameters.

    A step of a matrix is its momentum made orthogonal, times 0.2 sqrt(its longer side), so that it
    is as large as a usual step of AdamW, and one rate serves both (Liu et al., 2025).
    """

    kind: Literal["muon"]  # type: ignore[assignment]
    momentum: BelowOne = Field(0.95, description="of Muon's matrices, by Nesterov")


OPTIMIZERS = (AdamW, Muon)
# Option of an optimizer -> its description, of those that have a column in a study's table
DESCRIBED_OPTIONS = {
    name: option.description
    for optimizer in OPTIMIZERS
    for name, option in optimizer.model_fields.items()
    if option.description
}


def _kind(optimizer: Any) -> str:
    """Returns the kind of an optimizer's settings, given as data or built."""
    return "muon" if key_of(optimizer, "kind") == "muon" else "adamw"


class Schedule(Frozen):
    """A linear warm-up, then a cosine, or a constant rate and exponential decay (WSD)."""

    kind: Literal["cosine", "wsd"] = "cosine"
    warmup: Fraction = 0.02  # fraction of all steps, unless ``warmup_steps`` is set
    # The steps of the warm-up, whatever the length of the run: see ``RunConfig.trunk``
    warmup_steps: Count | None = None
    decay: Fraction = 0.1  # of WSD: fraction of all steps
    final: Fraction = 0.1  # the last learning rate as a fraction of the peak

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.kind == "wsd" and self.final == 0:
            raise ValueError("final = 0 cannot be reached by wsd's exponential decay")
        if self.warmup_steps is not None and self.warmup != Schedule.model_fields["warmup"].default:
            raise ValueError(
                f"warmup = {self.warmup:g} and warmup_steps = {self.warmup_steps} are both set; "
                "set one of them"
            )
        return self

    def warming(self, steps: int) -> int:
        """Returns how many of a run's ``steps`` warm up."""
        return round(self.warmup * steps) if self.warmup_steps is None else self.warmup_steps

    def decaying(self, steps: int) -> int:
        """Returns how many of a run's ``steps`` decay under WSD."""
        return max(0, min(round(self.decay * steps), steps - self.warming(steps)))


class Evaluation(Frozen):
    """The measurement on held-out text at the end of a run."""

    sequences: Count = 512  # whole contexts, the same ones for all runs on a corpus
    # How many contexts long the sequences are on which the loss beyond the context is measured, too
    longer: Count = 1


class RunConfig(Frozen):
    """One training of one model. ``run_id`` is its identity in all records."""

    model: Model
    corpus: Corpus
    steps: Count  # optimizer steps
    batch: Count  # sequences a step
    optimizer: Annotated[
        Annotated[AdamW, Tag("adamw")] | Annotated[Muon, Tag("muon")], Discriminator(_kind)
    ]
    schedule: Schedule = Schedule()
    balance_group: Count  # sequences over which the load-balancing loss is measured; divides batch
    precision: Literal["fp32", "bf16"] = "fp32"
    evaluation: Evaluation = Evaluation()
    max_epochs: Positive = 1.0  # passes over the training text that are allowed
    seed: Seed = 0  # of the initial weights and the order of the data
    # A negative control: the tokens of each training document in a random order. What is learned
    # from them is how often tokens occur, for the held-out text stays as it is.
    shuffle: Literal["none", "tokens"] = "none"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
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
    def held_out_tokens(self) -> int:
        """Returns how many tokens of held-out text are measured at the end."""
        return max(self.evaluation.sequences, self.evaluation.longer) * self.model.context

    @property
    def run_id(self) -> str:
        """Returns the first 16 hex digits of the SHA-256 of the canonical JSON."""
        return self.fingerprint()

    @property
    def trunk(self) -> str | None:
        """Returns a digest of all but the length if runs that differ in length share steps.

        Under WSD with a warm-up in steps they are the same run until the shorter one begins to
        decay (Haegele et al., 2024). Under other schedules they share nothing, and this is None.
        """
        if self.schedule.kind != "wsd" or self.schedule.warmup_steps is None:
            return None
        return self.of_length(1).fingerprint()

    @property
    def branch_step(self) -> int:
        """Returns the steps before the decay, which longer runs of the same trunk share."""
        return self.steps - self.schedule.decaying(self.steps)

    def of_length(self, steps: int) -> Self:
        """Returns this run with another number of steps."""
        return self.model_copy(update={"steps": steps})

    @property
    def tokens(self) -> int:
        """Returns the training tokens D."""
        return self.steps * self.batch * self.model.context

    @property
    def smallest_micro_batch(self) -> int:
        """Returns the fewest sequences that can be computed at a time: a balance group, because its
        loss is not a sum over sequences; one sequence of a dense model."""
        return self.balance_group if isinstance(self.model.ffn, MoE) else 1

    @property
    def groups(self) -> int:
        """Returns how many smallest micro-batches a batch has; each device takes at least one."""
        return self.batch // self.smallest_micro_batch
