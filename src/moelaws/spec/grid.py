"""A grid is data: settings, sweeps (products and zips of axes) and named derivations.

No expression in a grid file is ever evaluated. ``moelaws.grids`` expands it to runs.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, create_model, model_validator

from moelaws.spec.base import BelowOne, Count, Filled, Frozen, NonNegative, Positive, Real, Size
from moelaws.spec.base_shape import BaseShape
from moelaws.spec.errors import UserError, or_nearest, refuse_unknown
from moelaws.spec.experts import routers
from moelaws.spec.fit import NoName
from moelaws.spec.from_toml import table_beside
from moelaws.spec.model import DenseFFN, Model, Slices
from moelaws.spec.run import OPTIMIZERS, Evaluation, RunConfig, Schedule

Scalar = bool | int | float | str
Scalars = Filled[Scalar]
Stages = Literal["all"] | tuple[str, ...]  # of a grid
MAX_POINTS = 100_000  # of one sweep
# Ways to count FLOPs; ``accounting.flops`` says what each leaves out.
ConventionName = Literal[
    "sparsity", "allocation", "allocation_printed", "leverage", "leverage_no_router",
    "leverage_printed", "six_n",
]  # fmt: skip


# The parts of a run whose fields a grid may set. Its name for a field is the field's own behind the
# part's prefix, if there is one, unless ``RENAMED`` gives another.
PARTS: tuple[type[Frozen], ...] = (
    Model, BaseShape, *routers().values(), DenseFFN, Slices, RunConfig, *OPTIMIZERS, Schedule,
    Evaluation,
)  # fmt: skip
PREFIX: dict[type[Frozen], str] = {
    BaseShape: "base_",
    Slices: "slice_",
    Evaluation: "evaluation_",
}
RENAMED: dict[tuple[type[Frozen], str], str] = {
    (Slices, "n_experts"): "n_slices",
    (Slices, "n_heads"): "slice_heads",
    (Schedule, "kind"): "schedule",
}
_TABLE = table_beside(__file__)  # names of settings
HOLDERS = _TABLE["holders"]  # fields that hold a part


def names(part: type[Frozen]) -> dict[str, str]:
    """Returns field -> a grid's name for it, of the fields of a part that a grid may set."""
    prefix = PREFIX.get(part, "")
    every = {field: RENAMED.get((part, field), prefix + field) for field in part.model_fields}
    return {field: name for field, name in every.items() if name not in HOLDERS or field != name}


def data_of(point: Mapping[str, Any], *parts: type[Frozen]) -> dict[str, Any]:
    """Returns the settings of ``point`` that are fields of ``parts``, by the fields' names."""
    fields = (field for part in parts for field in names(part).items())
    return {field: point[name] for field, name in fields if name in point}


def _optional(part: type[Frozen]) -> Iterator[tuple[str, Any]]:
    for field, name in names(part).items():
        info = part.model_fields[field]
        kind: Any = info.annotation
        yield name, ((Annotated[(kind, *info.metadata)] if info.metadata else kind) | None, None)


class _OfGrids(Frozen):
    """The settings of a grid. All are optional: what is not set is derived or has a default.

    The settings that are not below are the fields of ``PARTS``. ``d_ffn`` is the width of dense
    models, and of the first ``n_dense_layers`` layers of others. ``n_slices`` splits blocks over
    the embedding; these have as many heads as the other blocks unless ``slice_heads`` is set.
    """

    C: Annotated[Positive, Field(le=1e40)] | None = None  # compute budget, FLOPs
    D: Count | None = None  # training tokens
    S: BelowOne | None = None  # sparsity (E - k) / E
    G: Positive | None = None  # granularity 2 d_model / d_expert
    r: Positive | None = None  # ratio of expert to attention FLOPs
    d_base: Size | None = None  # the width at which the rule ``ratio`` counts the FLOPs it keeps
    flops_per_token: Positive | None = None  # training FLOPs, for the rule ``flops``
    ffn: Literal["moe", "dense"] | None = None
    optimizer: Literal["adamw", "muon"] | None = None


if TYPE_CHECKING:

    class Settings(_OfGrids):
        def __getattr__(self, name: str) -> Any: ...
else:
    Settings = create_model(
        "Settings",
        __base__=_OfGrids,
        **dict(field for part in PARTS for field in _optional(part)),
    )


POSITIVE: list[str] = _TABLE["positive"]  # those that a power law or a table may depend on


class ExpertsFromSparsity(Frozen):
    """Sets n_experts = top_k / (1 - S), which must be whole."""

    rule: Literal["sparsity"]


class WidthFromGranularity(Frozen):
    """Sets d_expert = 2 * d_model / G by the leverage paper's G; the sparsity paper's is 2 G."""

    rule: Literal["granularity"]


class HeadsFromWidth(Frozen):
    """Sets n_heads = max(1, d_model / width), which must be whole, and n_kv alike if unset."""

    rule: Literal["head_width"]
    width: Count


class WidthsFromRatio(Frozen):
    """Sets the d_model and d_expert that have the FLOPs ratio r (allocation, B.1).

    Their FLOPs per token are those of d_model = d_expert = d_base: attention and experts as in the
    allocation paper's App C, corrected. d_model is a multiple of 2 n_heads; both are multiples of
    ``multiple``: GPUs multiply bf16 matrices faster if each row is whole blocks of 16 bytes.
    """

    rule: Literal["ratio"]
    multiple: Count = 1


class WidthFromFlops(Frozen):
    """Sets the hidden width at which training costs ``flops_per_token`` by a convention.

    This is d_ffn of dense models and d_expert of others, a multiple of ``multiple``. Unless they
    are set, the experts of E slices get the nearest such width to d_ffn / E, and dense layers below
    experts top_k * d_expert.
    """

    rule: Literal["flops"]
    convention: ConventionName
    multiple: Count = 1


class StepsFromCompute(Frozen):
    """Sets steps = C / (FLOPs per token * batch * context); refuses fewer than ``min_steps``."""

    rule: Literal["compute"]
    convention: ConventionName
    min_steps: Count


class ComputeOfTokens(Frozen):
    """The training FLOPs of some tokens by a convention."""

    convention: ConventionName
    D: Positive | None = None  # None: the point's own tokens


class StepsFromTokens(Frozen):
    """Sets steps = D / (batch * context), rounded; refuses fewer than ``min_steps``.

    ``laws_at`` is the C that the rules of lr and batch take for the point. Their laws are for
    models of the best size at C. If one architecture trains on several budgets, a D here fixes its
    lr.
    """

    rule: Literal["tokens"]
    min_steps: Count
    laws_at: ComputeOfTokens | None = None


class StepsGiven(Frozen):
    """Takes steps from the settings or a sweep; refuses fewer than ``min_steps``."""

    rule: Literal["given"]
    min_steps: Count


class PowerOf(Frozen):
    """Gives value * product over settings x of (x / at[x]) ** exponent[x]."""

    rule: Literal["power"]
    value: Positive
    at: dict[str, Positive]
    exponent: dict[str, Real]

    @model_validator(mode="after")
    def _same_settings(self) -> Self:
        if set(self.at) != set(self.exponent):
            raise ValueError("at and exponent must name the same settings")
        refuse_unknown("there is no positive setting", self.at, POSITIVE)
        return self


class PublishedLaw(Frozen):
    """Gives lr or batch by the leverage paper's Eq 5 at the point's C, or by Step Law at its N, D.

    N counts all experts and no embeddings; of a budget C, D is what the rule for steps buys.
    """

    rule: Literal["leverage", "step_law"]


class TableOf(Frozen):
    """Gives the last number of the row whose other numbers equal the point's settings ``by``."""

    rule: Literal["table"]
    by: Filled[str]
    rows: Filled[tuple[NonNegative, ...]]

    @model_validator(mode="after")
    def _well_formed(self) -> Self:
        if bool(self.by) != bool(self.rows):
            raise ValueError("by and rows make a table together; give both or none")
        refuse_unknown("there is no setting", self.by, ("S", *POSITIVE))  # a sparsity may be 0
        keys = [row[:-1] for row in self.rows]
        for row, key in zip(self.rows, keys, strict=True):
            if len(key) != len(self.by):
                raise ValueError(
                    f"row {_row(row)} must hold {', '.join(self.by)} and then the value"
                )
            if not row[-1]:
                raise ValueError(f"row {_row(row)} ends with 0; the value must be positive")
            if keys.count(key) > 1:
                raise ValueError(f"two rows are for {_row(key)}")
        return self


class Chosen(TableOf):
    """Follows the law or table that the project chooses (config.yaml, ``hyperparameters``).

    This is the tier's pinned law, the leverage paper's Eq 5, Step Law, or the table ``by`` and
    ``rows`` (see ``TableOf``). ``auto`` takes the pinned law if there is one, else the table, else
    Eq 5. With a ``search`` the best rates of that study take the place of the pinned law.
    """

    rule: Literal["chosen"]  # type: ignore[assignment]
    search: NoName = ""
    by: tuple[str, ...] = ()
    rows: tuple[tuple[NonNegative, ...], ...] = ()


def _row(numbers: tuple[float, ...]) -> str:
    return "[" + ", ".join(f"{number:g}" for number in numbers) + "]"


Hyperparameter = Annotated[PowerOf | PublishedLaw | TableOf | Chosen, Field(discriminator="rule")]


class Derivations(Frozen):
    """Rules for settings that follow from others; a setting that a sweep sets is not derived.

    A derived ``batch`` is rounded to a positive multiple of ``balance_group`` sequences (1 if
    unset). ``min_steps`` holds for steps that are set, too.
    """

    n_experts: ExpertsFromSparsity | None = None
    widths: WidthsFromRatio | None = None  # d_model and d_expert
    d_expert: WidthFromGranularity | None = None
    hidden_width: WidthFromFlops | None = None  # d_ffn of dense models and d_expert of others
    n_heads: HeadsFromWidth | None = None
    batch: Hyperparameter | None = None  # sequences
    lr: Hyperparameter | None = None
    steps: (
        Annotated[StepsFromCompute | StepsFromTokens | StepsGiven, Field(discriminator="rule")]
        | None
    ) = None


class Sweep(Frozen):
    """The product of ``axes`` and of the zipped groups in ``zip``."""

    name: NoName = ""
    axes: dict[str, Scalar | Scalars] = {}
    zip: tuple[dict[str, Scalars], ...] = ()
    corpora: Literal["all", "first"] = "all"  # of a study that names several
    stage: NoName = ""  # the part of the grid that it is of, which can be trained by itself

    @model_validator(mode="after")
    def _well_formed(self) -> Self:
        names = [name for group in self._groups for name in group]
        refuse_unknown("there is no setting", names, Settings.model_fields)
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is set twice in one sweep")
        for group in self.zip:
            if len({len(values) for values in group.values()}) != 1:
                lengths = {name: len(values) for name, values in group.items()}
                raise ValueError(f"zipped axes must be equally long, not {lengths}")
        points = math.prod(len(next(iter(group.values()))) for group in self._groups)
        if points > MAX_POINTS:
            raise ValueError(
                f"a sweep of {points:,} points; it may have at most {MAX_POINTS:,}: give fewer "
                "values, or zip axes that go together"
            )
        return self

    @property
    def _groups(self) -> list[dict[str, tuple[Scalar, ...]]]:
        """Returns the settings that change together, with their values: each axis changes alone."""
        alone = {name: v if isinstance(v, tuple) else (v,) for name, v in self.axes.items()}
        return [*({name: values} for name, values in alone.items()), *self.zip]

    def points(self) -> Iterator[dict[str, Scalar]]:
        """Yields each combination once, the last axis fastest."""
        names = [name for group in self._groups for name in group]
        for rows in product(*(zip(*group.values(), strict=True) for group in self._groups)):
            yield dict(zip(names, (value for row in rows for value in row), strict=True))


class Grid(Frozen):
    """The runs of one tier: ``settings`` for all, and the union of the sweeps."""

    settings: Settings = Settings()
    derive: Derivations = Derivations()
    sweeps: Filled[Sweep]

    @property
    def on_each_corpus(self) -> Self:
        """Returns the grid without the sweeps that are on the study's first corpus alone."""
        every = tuple(sweep for sweep in self.sweeps if sweep.corpora == "all")
        return self.model_copy(update={"sweeps": every})

    @property
    def stages(self) -> tuple[str, ...]:
        """Returns its stages, in the order in which they are worth training."""
        return tuple(dict.fromkeys(sweep.stage for sweep in self.sweeps if sweep.stage))

    def of_stages(self, stages: Stages) -> Self:
        """Returns the grid with the sweeps of some ``stages``; a UserError refuses unknown ones."""
        if stages == "all":
            return self
        for stage in stages:
            if stage not in self.stages:
                near = or_nearest(stage, self.stages, "there are")
                raise UserError(f"there is no stage {stage!r}{near}")
        chosen = tuple(sweep for sweep in self.sweeps if sweep.stage in stages)
        return self.model_copy(update={"sweeps": chosen})
