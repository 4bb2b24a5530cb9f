"""A grid is data: settings, sweeps (products and zips of axes) and named derivations.

Nothing in a grid file is ever evaluated. ``moelaws.grids`` expands it to runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model, model_validator

from moelaws.spec.base import Count, Frozen, Positive, Real, Share, Size, text_like
from moelaws.spec.errors import or_nearest
from moelaws.spec.experts import routers
from moelaws.spec.model import DenseFFN, Model, Slices
from moelaws.spec.run import AdamW, Evaluation, RunConfig, Schedule

Scalar = bool | int | float | str
MOST_POINTS = 100_000  # of one sweep
# How FLOPs are counted: ``accounting.flops`` says what each leaves out.
ConventionName = Literal[
    "sparsity", "allocation", "allocation_printed", "leverage", "leverage_printed", "six_n"
]


# The parts of a run whose fields a grid may set. A field goes by its own name, one of a part that
# has a prefix by that and its name, but for those of ``RENAMED``.
PARTS: tuple[type[Frozen], ...] = (
    Model, *routers().values(), DenseFFN, Slices, RunConfig, AdamW, Schedule, Evaluation,
)  # fmt: skip
PREFIX: dict[type[Frozen], str] = {Slices: "slice_", Evaluation: "evaluation_"}
RENAMED: dict[tuple[type[Frozen], str], str] = {
    (Slices, "n_experts"): "n_slices",
    (Slices, "n_heads"): "slice_heads",
    (Schedule, "kind"): "schedule",
}
# What holds a part, or says which of several it is.
HOLDERS = ("model", "corpus", "ffn", "slices", "optimizer", "schedule", "evaluation", "kind")


def names(part: type[Frozen]) -> dict[str, str]:
    """Returns the fields of a part that a grid may set, with the names by which it does."""
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
    """What a grid may set for a run, all optional: the rest is derived or has a default.

    ``C`` is the compute budget in FLOPs, ``D`` the training tokens, ``S`` the sparsity (E - k) / E
    and ``G`` the granularity 2 d_model / d_expert, as in the tables.
    ``r`` is the ratio of expert to attention FLOPs and ``d_base`` the width at which the rule
    ``ratio`` counts the FLOPs that it keeps; ``flops_per_token`` is what training costs a token,
    for the rule ``flops``.

    The others are the fields of ``PARTS``. ``d_ffn`` is the width of dense models and of the
    ``n_dense_layers`` first layers of others. ``n_slices`` splits blocks over the embedding; such
    blocks have as many heads as the others have unless ``slice_heads`` is set.
    """

    C: Annotated[Positive, Field(le=1e40)] | None = None
    D: Count | None = None
    S: Share | None = None
    G: Positive | None = None
    r: Positive | None = None
    d_base: Size | None = None
    flops_per_token: Positive | None = None
    ffn: Literal["moe", "dense"] | None = None


if TYPE_CHECKING:

    class Settings(_OfGrids):
        def __getattr__(self, name: str) -> Any: ...
else:
    Settings = create_model(
        "Settings",
        __base__=_OfGrids,
        **dict(field for part in PARTS for field in _optional(part)),
    )


# Settings that a power law or a table may stand on.
POSITIVE = (
    "C", "D", "G", "r", "d_base", "n_layers", "d_model", "n_heads", "n_kv", "context", "vocab_size",
    "n_experts", "top_k", "d_expert", "d_ffn", "batch", "n_slices", "chunk",
)  # fmt: skip


class ExpertsFromSparsity(Frozen):
    """n_experts = top_k / (1 - S), which must be whole."""

    rule: Literal["sparsity"]


class WidthFromGranularity(Frozen):
    """d_expert = 2 * d_model / G, the leverage paper's G; the sparsity paper's is twice that."""

    rule: Literal["granularity"]


class HeadsFromWidth(Frozen):
    """n_heads = max(1, d_model / width), which must be whole; n_kv alike unless it is set."""

    rule: Literal["head_width"]
    width: Count


class WidthsFromRatio(Frozen):
    """d_model and d_expert of the FLOPs ratio r at the FLOPs a token of d_base (allocation, B.1).

    d_model is a multiple of 2 n_heads; the FLOPs are those of d_model = d_expert = d_base,
    attention and experts as in the allocation paper's App C, corrected.
    """

    rule: Literal["ratio"]


class WidthFromFlops(Frozen):
    """The hidden width at which training costs ``flops_per_token``, by a convention.

    It is d_ffn of dense models and d_expert of others. The experts of E slices have d_ffn / E, and
    dense layers below experts top_k * d_expert, both unless they are set.
    """

    rule: Literal["flops"]
    convention: ConventionName


class StepsFromCompute(Frozen):
    """steps = C / (FLOPs per token * batch * context), rounded; refused below ``min_steps``."""

    rule: Literal["compute"]
    convention: ConventionName
    min_steps: Count


class ComputeOfTokens(Frozen):
    """What ``D`` tokens, or else the point's own, cost in training FLOPs by a convention."""

    convention: ConventionName
    D: Positive | None = None


class StepsFromTokens(Frozen):
    """steps = D / (batch * context), rounded; refused below ``min_steps``.

    ``laws_at`` is the C of the point for rules of lr and batch. Laws over C are those of models of
    the best size: where one architecture is trained on several budgets, one D holds its lr fixed.
    """

    rule: Literal["tokens"]
    min_steps: Count
    laws_at: ComputeOfTokens | None = None


class StepsGiven(Frozen):
    """steps are set under settings or in a sweep; refused below ``min_steps``."""

    rule: Literal["given"]
    min_steps: Count


class PowerOf(Frozen):
    """value * product over settings x of (x / at[x]) ** exponent[x]."""

    rule: Literal["power"]
    value: Positive
    at: dict[str, Positive]
    exponent: dict[str, Real]

    @model_validator(mode="after")
    def _same_settings(self) -> PowerOf:
        if set(self.at) != set(self.exponent):
            raise ValueError("at and exponent must name the same settings")
        _refuse_unknown(self.at)
        return self


class LeverageLaw(Frozen):
    """The leverage paper's Eq 5 at the point's C: lr, or batch."""

    rule: Literal["leverage"]


class TableOf(Frozen):
    """The last number of the row whose others are the point's settings in ``by``, exactly."""

    rule: Literal["table"]
    by: Annotated[tuple[str, ...], Field(min_length=1)]
    rows: Annotated[tuple[tuple[Positive, ...], ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _well_formed(self) -> TableOf:
        _refuse_unknown(self.by)
        keys = [row[:-1] for row in self.rows]
        for row, key in zip(self.rows, keys, strict=True):
            if len(key) != len(self.by):
                raise ValueError(
                    f"row {_row(row)} must hold {', '.join(self.by)} and then the value"
                )
            if keys.count(key) > 1:
                raise ValueError(f"two rows are for {_row(key)}")
        return self


class Chosen(Frozen):
    """The law or table that the project chooses (config.yaml, ``hyperparameters``).

    The tier's pinned law, the leverage paper's Eq 5, or the table of this rule, of which ``by`` and
    ``rows`` are those of ``TableOf``; ``auto`` is the first of pinned, table and Eq 5 there is.
    """

    rule: Literal["chosen"]
    by: tuple[str, ...] = ()
    rows: tuple[tuple[Positive, ...], ...] = ()

    @model_validator(mode="after")
    def _table_is_whole(self) -> Chosen:
        if bool(self.by) != bool(self.rows):
            raise ValueError("by and rows make a table together; give both or none")
        if self.rows:
            self.table()
        return self

    def table(self) -> TableOf:
        """Returns the rule's own table."""
        return TableOf(rule="table", by=self.by, rows=self.rows)


def _refuse_unknown(names: Iterable[str]) -> None:
    for name in names:
        if name not in POSITIVE:
            known = or_nearest(name, POSITIVE, "there are")
            raise ValueError(f"{name!r} is no positive setting{known}")


def _row(numbers: tuple[float, ...]) -> str:
    return "[" + ", ".join(f"{number:g}" for number in numbers) + "]"


Hyperparameter = Annotated[PowerOf | LeverageLaw | TableOf | Chosen, Field(discriminator="rule")]


class Derivations(Frozen):
    """Settings that follow from others; one that is set in a sweep is not derived.

    A derived ``batch`` is the nearest positive multiple of ``balance_group`` sequences, of one
    where that is not set. ``min_steps`` binds steps that are set, too.
    """

    n_experts: ExpertsFromSparsity | None = None
    widths: WidthsFromRatio | None = None  # d_model and d_expert
    d_expert: WidthFromGranularity | None = None
    hidden_width: WidthFromFlops | None = None  # d_ffn of dense models, d_expert of others
    n_heads: HeadsFromWidth | None = None
    batch: Hyperparameter | None = None  # sequences
    lr: Hyperparameter | None = None
    steps: (
        Annotated[StepsFromCompute | StepsFromTokens | StepsGiven, Field(discriminator="rule")]
        | None
    ) = None


class Sweep(Frozen):
    """The product of ``axes`` and of the zipped groups in ``zip``."""

    name: Annotated[
        str,
        text_like(
            "([A-Za-z][A-Za-z0-9_]*)?",
            "a name of letters, digits and underscores that begins with a letter",
        ),
    ] = ""
    axes: dict[str, Scalar | tuple[Scalar, ...]] = {}
    zip: tuple[dict[str, tuple[Scalar, ...]], ...] = ()

    @model_validator(mode="after")
    def _well_formed(self) -> Sweep:
        names = [*self.axes, *(name for group in self.zip for name in group)]
        for name in names:
            if name not in Settings.model_fields:
                known = or_nearest(name, Settings.model_fields, "known")
                raise ValueError(f"unknown setting {name!r}{known}")
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is set twice in one sweep")
        for name, values in self.axes.items():
            if values == ():
                raise ValueError(f"axis {name!r} has no values")
        for group in self.zip:
            if not all(group.values()):
                raise ValueError(f"a zipped axis of {', '.join(group)} has no values")
            if len({len(values) for values in group.values()}) != 1:
                lengths = {name: len(values) for name, values in group.items()}
                raise ValueError(f"zipped axes must be equally long, not {lengths}")
        points = math.prod(
            [len(values) for values in self.axes.values() if isinstance(values, tuple)]
            + [len(next(iter(group.values()), ())) for group in self.zip]
        )
        if points > MOST_POINTS:
            raise ValueError(
                f"a sweep of {points:,} points; it may have at most {MOST_POINTS:,}: give fewer "
                "values, or zip axes that go together"
            )
        return self

    def points(self) -> Iterator[dict[str, Scalar]]:
        """Yields each combination once, the last axis fastest."""
        choices: list[list[dict[str, Scalar]]] = [
            [{name: value} for value in (values if isinstance(values, tuple) else (values,))]
            for name, values in self.axes.items()
        ]
        for group in self.zip:
            rows = zip(*group.values(), strict=True)
            choices.append([dict(zip(group, row, strict=True)) for row in rows])
        for combination in product(*choices):
            yield {name: value for values in combination for name, value in values.items()}


class Grid(Frozen):
    """The runs of one tier: ``settings`` for all, and the union of the sweeps."""

    settings: Settings = Settings()
    derive: Derivations = Derivations()
    sweeps: tuple[Sweep, ...] = Field(min_length=1)
