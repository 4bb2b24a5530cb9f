"""config/advice.yaml: the laws that advice is taken from, and the shape that models have."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from moelaws.spec.base import BelowOne, Count, Frozen, NonNegative, Positive, Size, Whole, parse
from moelaws.spec.from_yaml import read_yaml
from moelaws.spec.grid import Derivations, Settings
from moelaws.spec.tier import Tier

ADVICE = Path("config/advice.yaml")


class LawEntry(Frozen):
    """A law, and the range of the runs behind its published coefficients."""

    law: str
    fitted_on: dict[str, tuple[NonNegative, NonNegative]] = {}  # column -> smallest and largest


class CandidateEntry(LawEntry):
    """A law of the loss. Advice takes each candidate as the truth in turn."""

    name: str = ""  # of the candidate, if it is not the law's
    mapping: dict[str, str] = {}  # variable -> the column of a plan that it reads
    S: BelowOne | None = None  # the sparsity of plans by a law without that variable


class SetterEntry(LawEntry):
    """A law that sets one ``variable`` of a plan to its result of that name.

    With ``largest``, the name of a result, ``variable`` is one of the law's own variables. It is
    set to the value between ``low`` and ``high`` at which that result is largest.
    """

    variable: str
    largest: str = ""
    low: Positive = 1.0
    high: Positive = 64.0


class AdviserEntry(LawEntry):
    """A law that says on how many tokens a budget should train, but not at which sparsity."""

    S: BelowOne  # at which the law is used


class KnownModel(Frozen):
    """A published mixture, as its report describes it."""

    N: Positive
    N_active: Positive
    E: Count
    k: Count
    n_layers: Count | None = None
    d_model: Count | None = None
    D: Positive | None = None  # tokens, if they are published
    source: str


class Shape(Frozen):
    """What all advised configurations share: the rules of the grids, or those of a user's stack."""

    head_width: Size = 128
    width_multiple: Size = 256  # of d_model
    expert_multiple: Size = 64  # of the experts' width
    width_per_layer: tuple[Positive, Positive] = (48.0, 128.0)  # d_model / n_layers
    query_groups: Size = 4  # query heads of a key-value head
    n_shared: Annotated[Whole, Field(le=64)] = 1
    dense_layers: tuple[Whole, ...] = (0, 1)  # of a mixture, before those with experts
    context: Count = 4096
    vocab_size: Size = 128_256
    tied_embeddings: bool = False


class SweepEntry(Frozen):
    """The small sweeps that advice proposes: what their runs share, and their budgets."""

    tier: Tier
    settings: Settings
    derive: Derivations
    sparsities: tuple[BelowOne, ...]
    head_width: Size = 64  # d_model is a multiple of two heads
    width_per_layer: Positive = 48.0
    min_steps: Count = 200  # fewest steps of a run
    step_tokens: Positive = 65536
    noise: Positive = 0.003  # assumed standard deviation of ln L between seeds
    # The budgets of each candidate sweep, as fractions of the budget that advice is for
    candidates: tuple[tuple[Positive, ...], ...]


class AdviceConfig(Frozen):
    candidate_laws: tuple[CandidateEntry, ...]
    advisers: tuple[AdviserEntry, ...] = ()
    setters: tuple[SetterEntry, ...] = ()
    shape: Shape = Shape()
    known: dict[str, KnownModel] = {}
    sweep: SweepEntry
    shapes: dict[Tier, Shape] = {}

    @property
    def laws(self) -> tuple[str, ...]:
        return tuple(e.law for e in (*self.candidate_laws, *self.advisers, *self.setters))

    def shape_of(self, tier: str | None) -> Shape:
        """Returns the shape of configurations at budgets beyond those of ``tier``."""
        return self.shapes.get(tier or "", self.shape)


def load_advice(root: Path = Path()) -> AdviceConfig:
    return parse(AdviceConfig, read_yaml(root / ADVICE), ADVICE)
