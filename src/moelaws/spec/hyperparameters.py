"""Laws of learning rate and batch, or best rates, of a search, pinned for the other studies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from moelaws.spec.base import Count, Fraction, Frozen, Positive, Real, parse
from moelaws.spec.base_shape import BaseShape
from moelaws.spec.experts import Gates
from moelaws.spec.from_yaml import read_yaml
from moelaws.spec.grid import TableOf
from moelaws.spec.project import Hyperparameters, Project

FOLDER = Path("config/hyperparameters")
GATES: tuple[Gates, ...] = ("selected", "all")  # kinds that have laws of their own


class PinnedLaw(Frozen):
    """The law coefficient * C ** exponent over the training compute C in FLOPs (leverage, Eq 5).

    The intervals are those of the fit. Over few decades coefficient and exponent are correlated, so
    within its budgets the law is known far better than these intervals suggest.
    """

    coefficient: Positive  # the value at 1 FLOP
    coefficient_interval: tuple[Positive, Positive]
    exponent: Real
    exponent_interval: tuple[Real, Real]

    def at(self, C: float) -> float:
        """Returns the law at a compute of ``C`` FLOPs."""
        return float(self.coefficient * C**self.exponent)


class PinnedFit(Frozen):
    """The fit that one of the two laws comes from."""

    name: str  # of the fit in its study
    runs: Count  # near-optimal runs that it was fitted to
    digest: str  # SHA-256 of the columns that it was fitted to


class Provenance(Frozen):
    """What the laws rest on."""

    study: str
    tier: str
    lr: PinnedFit
    batch_tokens: PinnedFit
    level: Fraction  # of the intervals
    tolerance: Positive  # near-optimal is a loss up to 1 + tolerance times the budget's lowest
    searched: Count  # completed runs of the search, over all budgets and kinds of models
    C: tuple[Positive, Positive]  # the smallest and the largest budget fitted, FLOPs
    corpora: tuple[str, ...]  # identities of the text; empty where the runs are not on record
    versions: dict[str, str]  # of the packages that the numbers rest on
    gates: Gates = "selected"  # of the mixtures searched
    notes: tuple[str, ...] = ()  # what limits the trust in them


class Pinned(Frozen):
    """A tier's pinned laws for one kind of gates (``pinned_file``)."""

    lr: PinnedLaw  # peak learning rate
    batch_tokens: PinnedLaw  # tokens a step
    provenance: Provenance


class BestRates(Frozen):
    """A search's best learning rates: ``config/hyperparameters/rates/<tier>-<study>.yaml``."""

    lr: TableOf
    runs: Count  # completed runs of the search
    corpora: tuple[str, ...]  # as of ``Provenance``
    optimizer: str = "adamw"  # of all runs of the search


class BaseRate(Frozen):
    """The best learning rate at a base shape, and the recipe by which it was found."""

    base: BaseShape
    parameterization: Literal["mup", "completep"] = "completep"
    optimizer: Literal["adamw", "muon"] = "adamw"
    lr: Positive
    lr_interval: tuple[Positive, Positive]
    init_std: Positive
    D: Positive  # training tokens of its runs
    batch: Count  # sequences
    context: Count
    vocab_size: Count


class Transferred(Frozen):
    """Rates that larger models take over: ``config/hyperparameters/transfer/<tier>.yaml``."""

    bases: tuple[BaseRate, ...]
    # Best rates go as D ** exponent over the training tokens; unless a search here says otherwise,
    # by another group's runs of 10 to 166 billion tokens
    exponent: Real = -0.32
    exponent_interval: tuple[Real, Real] | None = None
    exponent_from: str = "HyperP (arXiv 2603.28743), Eq 8"
    corpora: tuple[str, ...]  # as of ``Provenance``

    def of(self, top_k: int | None, n_experts: int | None, optimizer: str) -> BaseRate | None:
        """Returns the base with this share of active experts; without experts, a dense one."""
        for own in self.bases:
            k, E = own.base.top_k or 0, own.base.n_experts or 0
            alike = bool(E) == bool(n_experts) and k * (n_experts or 0) == E * (top_k or 0)
            if own.optimizer == optimizer and alike:
                return own
        return None


@dataclass(frozen=True)
class Choice:
    """What grids with the rule ``chosen`` follow."""

    # The project's setting (``config/config.yaml``, ``hyperparameters``)
    source: Hyperparameters = "auto"
    pins: tuple[Pinned, ...] = ()  # the tier's pinned laws, one for each kind of gates searched
    file: Path = FOLDER  # where they are, for messages
    rates: Mapping[str, BestRates] = field(default_factory=dict)  # study that searched -> its own
    transferred: Transferred | None = None

    def of(self, gates: Gates) -> Pinned | None:
        """Returns the pinned laws of models with such gates, or else those of the other gates."""
        own = [pinned for pinned in self.pins if pinned.provenance.gates == gates]
        return next(iter((*own, *self.pins)), None)

    def borrowed(self, gates: Gates) -> str:
        """Returns what to say where models with such gates follow laws of other trainings."""
        if self.source == "transfer" and self.transferred:
            known = self.transferred
            return (
                f"learning rates go as D^{known.exponent:g} from the tokens of their base, by "
                f"{known.exponent_from}"
            )
        pinned = self.of(gates) if self.source in ("auto", "pinned") else None
        if pinned is None or gates in ("none", pinned.provenance.gates):
            return ""
        searched, tier = pinned.provenance.gates, pinned.provenance.tier
        return (
            f"the gates are a softmax over {gates} experts, but learning rates and batches follow "
            f"{pinned_file(tier, searched)}, whose search had gates over {searched} experts; "
            "search and pin laws for these gates (docs/hyperparameters.md)"
        )


def pinned_file(tier: str, gates: Gates = "selected") -> Path:
    """Returns the path of a tier's pinned laws, for models with such gates, from the root."""
    return FOLDER / f"{tier}{'-gates-over-all' if gates == 'all' else ''}.yaml"


def rates_file(tier: str, search: str) -> Path:
    """Returns the path of the best rates of the study ``search`` from the repository's root."""
    return FOLDER / "rates" / f"{tier}-{search}.yaml"


def transfer_file(tier: str) -> Path:
    """Returns the path of the rates that models of ``tier`` take over, from the root."""
    return FOLDER / "transfer" / f"{tier}.yaml"


def read_pinned(tier: str, root: Path = Path(), gates: Gates = "selected") -> Pinned | None:
    """Returns the laws pinned for models of ``tier`` with such gates; None if nobody pinned any."""
    file = pinned_file(tier, gates)
    return parse(Pinned, read_yaml(root / file), file) if (root / file).exists() else None


def choice_of(project: Project, root: Path = Path()) -> Choice:
    """Returns the project's choice, with its tier's pinned laws and rates."""
    tier = project.tier
    rates = {
        path.stem.removeprefix(f"{tier}-"): parse(BestRates, read_yaml(path), path)
        for path in sorted((root / rates_file(tier, "")).parent.glob(f"{tier}-*.yaml"))
    }
    pins = filter(None, (read_pinned(tier, root, gates) for gates in GATES))
    file = root / transfer_file(tier)
    bases = parse(Transferred, read_yaml(file), file) if file.exists() else None
    return Choice(project.hyperparameters, tuple(pins), pinned_file(tier), rates, bases)
