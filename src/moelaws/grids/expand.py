"""A grid expanded to runs: the sweep that Snakemake, the command line and the tables agree on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from moelaws.accounting.flops import train_flops_per_token
from moelaws.grids.derive import derive_settings, steps_from_compute
from moelaws.spec.base import parse
from moelaws.spec.corpus import Corpus
from moelaws.spec.errors import UserError
from moelaws.spec.grid import Grid, Settings
from moelaws.spec.model import MoE
from moelaws.spec.run import RunConfig


@dataclass(frozen=True)
class Run:
    """A run of a sweep and the budget that its grid point named (None where steps are set)."""

    run_id: str
    config: RunConfig
    C: float | None

    @property
    def flops(self) -> float:
        """Training FLOPs by the sparsity paper's convention (Eq 9)."""
        return train_flops_per_token(self.config.model, "sparsity") * self.config.tokens


@dataclass(frozen=True)
class CorpusChoice:
    """What the project says of the text; the grid adds the vocabulary."""

    digest: str
    validation: float
    seed: int


_MODEL = ("n_layers", "d_model", "n_heads", "n_kv", "context", "vocab_size")
_MODEL_OPTIONS = ("qk_norm", "tied_embeddings", "rope_theta", "init_std")
_MOE = ("n_experts", "top_k", "d_expert")
_MOE_OPTIONS = ("n_shared", "normalize_top_k", "load_balance", "router_z")
_OPTIMIZER = ("lr", "beta1", "beta2", "eps", "weight_decay", "scale_free", "clip")
_SCHEDULE = ("warmup", "decay", "final")


def expand(grid: Grid, corpus: CorpusChoice, where: str, seed: int = 0) -> list[Run]:
    """The runs of ``grid``, each once, in the grid's order.

    Args:
        where: file and tier, for messages.
        seed: added to the seed of every run.

    Raises:
        UserError: for an impossible point, naming it and what is wrong.
    """
    settings = grid.settings.model_dump(exclude_none=True)
    runs: dict[str, Run] = {}
    for number, sweep in enumerate(grid.sweeps):
        for axes in sweep.points():
            label = f"{where}, sweep {number + 1}, point {_show(axes)}"
            checked = parse(Settings, axes, label)
            values = {name: getattr(checked, name) for name in axes}
            try:
                run = _run({**settings, **values}, grid, corpus, label, seed)
            except UserError as error:
                if str(error).startswith(label):
                    raise
                raise UserError(f"{label}: {error}") from None
            runs.setdefault(run.run_id, run)
    return list(runs.values())


def _run(point: dict[str, Any], grid: Grid, corpus: CorpusChoice, label: str, seed: int) -> Run:
    point = derive_settings(point, grid.derive)
    config: dict[str, Any] = {
        "model": _model(point),
        "corpus": _corpus(corpus, point.get("vocab_size") or _missing("vocab_size")),
        "batch": point.get("batch"),
        "balance_group": point.get("balance_group", point.get("batch")),
        "optimizer": _pick(point, _OPTIMIZER),
        "schedule": {
            **({"kind": point["schedule"]} if "schedule" in point else {}),
            **_pick(point, _SCHEDULE),
        },
        "seed": point.get("seed", 0) + seed,
        "steps": point.get("steps", 1),
        **_pick(point, ("precision", "max_epochs")),
    }
    if "evaluation_sequences" in point:
        config["evaluation"] = {"sequences": point["evaluation_sequences"]}
    config = {name: value for name, value in config.items() if value is not None}
    parsed = parse(RunConfig, config, label)
    _refuse_width(parsed)
    if "steps" not in point:
        if grid.derive.steps is None:
            _missing("steps")
        steps = steps_from_compute(point, parsed.model, grid.derive.steps)
        parsed = parsed.model_copy(update={"steps": steps})
    return Run(parsed.run_id, parsed, point.get("C"))


@lru_cache
def _corpus(corpus: CorpusChoice, vocab_size: int) -> Corpus:
    data = {
        "source": {"digest": corpus.digest},
        "vocab_size": vocab_size,
        "validation": corpus.validation,
        "seed": corpus.seed,
    }
    return parse(Corpus, data, "corpus")


def _refuse_width(config: RunConfig) -> None:
    """Grouped matrix products want rows of whole 16 bytes."""
    multiple = 8 if config.precision == "bf16" else 4
    if isinstance(config.model.ffn, MoE) and config.model.d_model % multiple:
        raise UserError(
            f"d_model is {config.model.d_model}; with experts it must be a multiple of {multiple} "
            f"in {config.precision}"
        )


def _model(point: Mapping[str, Any]) -> dict[str, Any]:
    if point.get("ffn", "moe") == "dense":
        ffn = {"kind": "dense", **_pick(point, ("d_ffn",))}
    else:
        ffn = {"kind": "moe", **_pick(point, _MOE), **_pick(point, _MOE_OPTIONS)}
    return {**_pick(point, _MODEL), **_pick(point, _MODEL_OPTIONS), "ffn": ffn}


def _pick(point: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: point[name] for name in names if name in point}


def _missing(setting: str) -> NoReturn:
    raise UserError(f"{setting} is missing; set it under settings or in a sweep, or derive it")


def _show(axes: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in axes.items()) + "}"
