"""The columns of a table that follow from a run's configuration alone, and selection by them."""

from typing import Any

from moelaws.accounting.flops import attention_and_ffn, train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.grids.expand import Run
from moelaws.grids.sweep import Sweep
from moelaws.spec.errors import located
from moelaws.spec.grid import ConventionName
from moelaws.spec.model import Model, MoE
from moelaws.spec.rows import select
from moelaws.spec.run import DESCRIBED_OPTIONS

_COUNTS: tuple[ConventionName, ...] = ("sparsity", "allocation", "leverage", "leverage_no_router")
_OF_MODEL = ("n_layers", "d_model", "n_heads", "n_kv", "gates", "context", "vocab_size")


def describe(run: Run) -> dict[str, Any]:
    """Returns column -> value for those columns of ``tables.schema``."""
    config = run.config
    model, tokens, schedule = config.model, config.tokens, config.schedule
    parameters = count_parameters(model)
    ffn = model.ffn
    moe = isinstance(ffn, MoE)
    width = ffn.d_expert if isinstance(ffn, MoE) else ffn.d_ffn
    if model.slices:
        width = model.slices.d_expert
    attention, feed_forward = attention_and_ffn(model, "allocation")
    # What sparsity changes: the experts, and the steps where the router's FLOPs count
    alike = ffn.model_copy(update={"n_experts": ffn.top_k}) if isinstance(ffn, MoE) else ffn
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
        "G": 2 * model.d_model / width if moe else None,
        "r": feed_forward / attention,
        "n_dense_layers": model.n_full_layers - model.n_moe_layers,
        "d_expert": width,
        **{name: getattr(model, name) for name in _OF_MODEL},
        "lr": config.optimizer.lr,
        "batch_tokens": config.batch * model.context,
        "steps": config.steps,
        "load_balance": ffn.balance_loss if isinstance(ffn, MoE) else None,
        "balance": ffn.balance if isinstance(ffn, MoE) else None,
        "gate": ffn.gate if isinstance(ffn, MoE) else None,
        "capacity_factor": ffn.capacity_factor if isinstance(ffn, MoE) else None,
        "warmup": schedule.warmup
        if schedule.warmup_steps is None
        else schedule.warmup_steps / config.steps,
        "optimizer": config.optimizer.kind,
        **{name: getattr(config.optimizer, name, None) for name in DESCRIBED_OPTIONS},
        "shuffle": config.shuffle,
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
    ffn = model.ffn
    if isinstance(ffn, MoE):
        return {
            "S": ffn.sparsity,
            "S_shared": 1 - ffn.activation,
            "A": ffn.activation,
            "E": ffn.n_experts,
            "k": ffn.top_k,
            "E_s": ffn.n_shared,
            "route_by": ffn.route_by,
            "chunk": ffn.decision,
            "slice_positions": "none",
        }
    unrouted = {"E_s": 0, "route_by": "none", "chunk": 0}
    if slices := model.slices:
        E, k = slices.n_experts, slices.n_experts if slices.positions == "all" else 1
        ratios = {"S": 1 - k / E, "S_shared": 1 - k / E, "A": k / E}
        return {**unrouted, **ratios, "E": E, "k": k, "slice_positions": slices.positions}
    dense = {"S": 0.0, "S_shared": 0.0, "A": 1.0, "E": 1, "k": 1}
    return {**unrouted, **dense, "slice_positions": "none"}
