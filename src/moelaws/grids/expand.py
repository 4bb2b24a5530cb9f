"""A grid expanded to runs: the sweep that Snakemake, the command line and the tables agree on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from moelaws.accounting.flops import train_flops_per_token
from moelaws.grids.derive import derive_architecture, derive_hyperparameters, planned_steps
from moelaws.grids.text import CorpusChoice, corpus_of, with_vocabulary
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.grid import Grid, Settings
from moelaws.spec.hyperparameters import Choice
from moelaws.spec.model import Model
from moelaws.spec.run import RunConfig


@dataclass(frozen=True)
class Run:
    """A run of a sweep, the budget that its grid point named (None where steps are set), and the
    named sweeps that ask for it."""

    run_id: str
    config: RunConfig
    C: float | None
    sweeps: tuple[str, ...] = ()

    @property
    def flops(self) -> float:
        """Training FLOPs by the sparsity paper's convention (Eq 9)."""
        return train_flops_per_token(self.config.model, "sparsity") * self.config.tokens


AUTO = Choice()  # as a project without pinned laws

_MODEL = ("n_layers", "d_model", "n_heads", "n_kv", "context", "vocab_size")
_MODEL_OPTIONS = ("qk_norm", "tied_embeddings", "rope_theta", "init_std", "head_width")
_DENSE = ("d_ffn", "mlp")
_MOE = (
    "n_experts", "top_k", "d_expert", "n_shared", "normalize_top_k", "load_balance", "router_z",
    "jitter", "mlp",
)  # fmt: skip
_OPTIMIZER = ("lr", "beta1", "beta2", "eps", "weight_decay", "scale_free", "clip")
_SCHEDULE = ("warmup", "decay", "final")


def expand(
    grid: Grid, corpus: CorpusChoice, where: str, seed: int = 0, choice: Choice = AUTO
) -> list[Run]:
    """The runs of ``grid``, each once, in the grid's order.

    Args:
        where: file and tier, for messages.
        seed: added to the seed of every run.
        choice: what learning rates and batches whose rule is ``chosen`` follow.

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
                run = _run({**settings, **values}, grid, corpus, label, seed, choice)
            except UserError as error:
                if str(error).startswith(label):
                    raise
                raise UserError(f"{label}: {error}") from None
            known = runs.setdefault(run.run_id, run)
            if sweep.name and sweep.name not in known.sweeps:
                runs[run.run_id] = replace(known, sweeps=(*known.sweeps, sweep.name))
    return list(runs.values())


def _run(
    point: dict[str, Any],
    grid: Grid,
    corpus: CorpusChoice,
    label: str,
    seed: int,
    choice: Choice,
) -> Run:
    rule = grid.derive.batch
    batch_from = "set" if "batch" in point or rule is None else f"by the rule {rule.rule}"
    point = derive_architecture(with_vocabulary(point, corpus), grid.derive)
    model = parse(Model, _model(point), label)
    point = derive_hyperparameters(point, model, grid.derive, choice)
    config: dict[str, Any] = {
        "model": model,
        "corpus": corpus_of(corpus, model.vocab_size),
        "batch": point.get("batch"),
        "balance_group": point.get("balance_group", point.get("batch")),
        "optimizer": _pick(point, _OPTIMIZER),
        "schedule": {
            **({"kind": point["schedule"]} if "schedule" in point else {}),
            **_pick(point, _SCHEDULE),
        },
        "seed": point.get("seed", 0) + seed,
        "steps": 1,  # planned below, of a batch that is known to be sound
        **_pick(point, ("precision", "max_epochs")),
    }
    if "evaluation_sequences" in point:
        config["evaluation"] = {"sequences": point["evaluation_sequences"]}
    config = {name: value for name, value in config.items() if value is not None}
    parsed = parse(RunConfig, config, label)
    steps = planned_steps(point, model, grid.derive, batch_from)
    parsed = parsed.model_copy(update={"steps": steps})
    return Run(parsed.run_id, parsed, point.get("C"))


def _model(point: Mapping[str, Any]) -> dict[str, Any]:
    if point.get("ffn", "moe") == "dense":
        ffn = {"kind": "dense", **_pick(point, _DENSE)}
    else:
        ffn = {"kind": "moe", **_pick(point, _MOE)}
        if point.get("n_dense_layers"):
            ffn |= _pick(point, ("n_dense_layers", "d_ffn"))
    return {**_pick(point, _MODEL), **_pick(point, _MODEL_OPTIONS), "ffn": ffn}


def _pick(point: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: point[name] for name in names if name in point}


def _show(axes: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in axes.items()) + "}"
