"""config/advice.yaml: which laws advice is taken from, and what shape the models have."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from moelaws.spec.base import Count, Frozen, NonNegative, Positive, Share, Size, Whole, parse
from moelaws.spec.from_yaml import read_yaml
from moelaws.spec.grid import Derivations, Settings
from moelaws.spec.study import Tier

ADVICE = Path("config/advice.yaml")


class LawEntry(Frozen):
    """A law, and the runs behind its published coefficients: column -> least and most."""

    law: str
    fitted_on: dict[str, tuple[NonNegative, NonNegative]] = {}


class CandidateEntry(LawEntry):
    """A law of the loss that is taken as the truth in turn.

    ``mapping`` says which column of a plan a variable reads, ``S`` the sparsity that goes with a
    law that speaks of none.
    """

    mapping: dict[str, str] = {}
    S: Share | None = None


class SetterEntry(LawEntry):
    """A law that sets one ``variable`` of a plan.

    The variable is a result of the law; with ``largest`` it is one of the law's own variables, at
    the value between ``low`` and ``high`` of the largest such result.
    """

    variable: str
    largest: str = ""
    low: Positive = 1.0
    high: Positive = 64.0


class AdviserEntry(LawEntry):
    """A law that says how many tokens a budget should train, at a sparsity that it does not say."""

    S: Share


class Shape(Frozen):
    """What the configurations have in common: the grids' own rules, and a user's own stack."""

    head_width: Size = 128
    width_multiple: Size = 256  # of d_model
    expert_multiple: Size = 64  # of the experts' width
    width_per_layer: tuple[Positive, Positive] = (48.0, 128.0)  # d_model / n_layers
    query_groups: Size = 4  # query heads of a key-value head
    n_shared: Annotated[Whole, Field(le=64)] = 1
    context: Count = 4096
    vocab_size: Size = 128_256
    tied_embeddings: bool = False


class SweepEntry(Frozen):
    """The small sweeps that advice proposes: what their runs have in common, and their budgets.

    Each of ``candidates`` is budgets as fractions of the one that advice is asked for. Widths are
    multiples of two heads; a run has at least ``min_steps`` steps of ``step_tokens``. ``noise`` is
    the spread of ln L between seeds that is reckoned with.
    """

    tier: Tier
    settings: Settings
    derive: Derivations
    sparsities: tuple[Share, ...]
    head_width: Size = 64
    width_per_layer: Positive = 48.0
    min_steps: Count = 200
    step_tokens: Positive = 65536
    noise: Positive = 0.003
    candidates: tuple[tuple[Positive, ...], ...]


class AdviceConfig(Frozen):
    """The whole file.

    A candidate law that would extrapolate to its own best plan by more than ``farthest`` decades,
    of compute, a size or tokens, takes no part.
    """

    candidate_laws: tuple[CandidateEntry, ...]
    advisers: tuple[AdviserEntry, ...] = ()
    setters: tuple[SetterEntry, ...] = ()
    shape: Shape = Shape()
    sweep: SweepEntry
    farthest: Positive = 3.0
    shapes: dict[Tier, Shape] = {}

    @property
    def laws(self) -> tuple[str, ...]:
        """Returns every law that the file names."""
        return tuple(e.law for e in (*self.candidate_laws, *self.advisers, *self.setters))

    def shape_of(self, tier: str | None) -> Shape:
        """Returns the shape of configurations at budgets beyond those of a tier."""
        return next((own for name, own in self.shapes.items() if name == tier), self.shape)


def load_advice(root: Path = Path()) -> AdviceConfig:
    """Returns what the project's file says."""
    return parse(AdviceConfig, read_yaml(root / ADVICE), ADVICE)
