"""The columns of a table that follow from a run's configuration alone, and selection by them."""

from typing import Any

from moelaws.accounting.flops import attention_and_ffn, train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.grids.expand import Run
from moelaws.grids.sweep import Sweep
from moelaws.spec.errors import located
from moelaws.spec.grid import ConventionName
from moelaws.spec.model import Model, MoE
from moelaws.spec.parts import Part
from moelaws.spec.rows import select
from moelaws.spec.run import DESCRIBED_OPTIONS

_COUNTS: tuple[ConventionName, ...] = ("sparsity", "allocation", "leverage", "leverage_no_router")
_OF_MODEL = ("n_layers", "d_model", "n_heads", "n_kv", "gates", "context", "vocab_size")


def describe(run: Run) -> dict[str, Any]:
    """Returns column -> value for those columns of ``tables.schema``."""
    config = run.config
    model, tokens, schedule = config.model, config.tokens, config.schedule
    parameters = count_parameters(model)
    ffn, G = model.ffn, None
    alike: Part = ffn
    if isinstance(ffn, MoE):
        width, G = ffn.d_expert, 2 * model.d_model / ffn.d_expert
        alike = ffn.model_copy(update={"n_experts": ffn.top_k})
    else:
        width = model.slices.d_expert if model.slices else ffn.d_ffn
    attention, feed_forward = attention_and_ffn(model, "allocation")
    # What sparsity changes: the experts, and the steps where the router's FLOPs count
    common = {"model": model.model_copy(update={"ffn": alike}), "steps": 1, "seed": 0}
    return {
        "run_id": run.run_id,
        "sweep": ",".join(run.sweeps),
        "corpus": run.corpus,
        "trunk": config.trunk or run.run_id,
        "seed": config.seed,
        "kind": "slice" if model.slices else ffn.kind,
        "N_total": parameters.total,
        "N_active": parameters.active,
        "N_total_nonemb": parameters.total - parameters.embeddings,
        "N_active_nonemb": parameters.active - parameters.embeddings,
        "C_6N": train_flops_per_token(model, "six_n") * tokens,
        **{f"C_{by}": train_flops_per_token(model, by) * tokens for by in _COUNTS},
        "D": tokens,
        **_experts(model),
        "G": G,
        "r": feed_forward / attention,
        "n_dense_layers": model.n_full_layers - model.n_moe_layers,
        "d_expert": width,
        **{name: getattr(model, name) for name in _OF_MODEL},
        "lr": config.optimizer.lr,
        "batch_tokens": config.batch * model.context,
        "steps": config.steps,
        "load_balance": getattr(ffn, "balance_loss", None),
        **{name: getattr(ffn, name, None) for name in ("balance", "gate", "capacity_factor")},
        "warmup": schedule.warmup
        if schedule.warmup_steps is None
        else schedule.warmup_steps / config.steps,
        "optimizer": config.optimizer.kind,
        **{name: getattr(config.optimizer, name, None) for name in DESCRIBED_OPTIONS},
        "shuffle": config.shuffle,
        "parameterization": model.parameterization,
        "recipe": config.model_copy(update=common).fingerprint(),
    }


def kept_runs(sweep: Sweep) -> dict[str, tuple[int, ...]]:
    """Returns the runs whose weights the study's ``keep_weights`` keeps.

    Each has the steps before its last one whose weights are kept, too.
    """
    keep = sweep.study.keep_weights
    if not keep.keeps_any(sweep.tier):
        return {}
    kept = {}
    for run in sweep.runs:
        if keep.sweep and keep.sweep not in run.sweeps:
            continue
        with located(sweep.study.file, "keep_weights"):
            if select(describe(run) | {"C": run.C}, keep.rows):
                kept[run.run_id] = keep.steps_of(run.config.steps)
    return kept


def _experts(model: Model) -> dict[str, Any]:
    """Returns what a token's way through experts is; slices of the embedding are experts, too."""
    ffn, slices = model.ffn, model.slices
    E, k, shared, routed = 1, 1, 0, {"route_by": "none", "chunk": 0}
    if isinstance(ffn, MoE):
        E, k, shared = ffn.n_experts, ffn.top_k, ffn.n_shared
        routed = {"route_by": ffn.route_by, "chunk": ffn.decision}
    elif slices:
        E = slices.n_experts
        k = E if slices.positions == "all" else 1
    A = (k + shared) / (E + shared)
    ratios = {"S": (E - k) / E, "S_shared": 1 - A, "A": A}
    positions = slices.positions if slices else "none"
    return {**ratios, "E": E, "k": k, "E_s": shared, **routed, "slice_positions": positions}
