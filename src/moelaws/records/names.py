"""Names by which people call runs, such as ``d48 E32 2e11 s0``, and runs found by them."""

from typing import Any

from moelaws.accounting.flops import train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.files.layout import Results
from moelaws.records.runs import Record, all_records, differences, read_record
from moelaws.spec.errors import UserError
from moelaws.spec.model import MoE
from moelaws.spec.run import RunConfig

_MOST = 5  # runs, or things in which they differ, that a message names


def flops_of(config: RunConfig) -> float:
    """Returns a run's training FLOPs by the sparsity paper's convention (Eq 9)."""
    return train_flops_per_token(config.model, "sparsity") * config.tokens


def name_of(config: RunConfig) -> str:
    """Returns a run's name: its width, its experts, its training FLOPs and its seed.

    Runs that differ in something else, such as the learning rate, share a name.
    """
    model, budget = config.model, f"{flops_of(config):.2g}".replace("e+", "e")
    experts = f"E{model.ffn.n_experts}" if isinstance(model.ffn, MoE) else "dense"
    return f"d{model.d_model} {experts} {budget} s{config.seed}"


def sizes_of(config: RunConfig) -> dict[str, Any]:
    """Returns a run's name, C, S, N and N_active."""
    parameters, ffn = count_parameters(config.model), config.model.ffn
    return {
        "name": name_of(config),
        "C": flops_of(config),
        "S": ffn.sparsity if isinstance(ffn, MoE) else 0.0,
        "N": parameters.total,
        "N_active": parameters.active,
    }


def config_of(record: Record) -> RunConfig | None:
    """Returns a run's configuration; None if it is damaged or of another version."""
    try:
        return RunConfig.model_validate(record.config)
    except ValueError:
        return None


def find_record(results: Results, word: str) -> Record:
    """Returns the run whose id begins with ``word``, or else the one whose name has its words.

    A UserError lists the runs that may be meant, with the first things in which they differ.
    """
    ids = sorted(p.name for p in results.runs.glob(f"{word}*")) if word.isalnum() else []
    if len(ids) == 1:
        return read_record(results, ids[0])
    if ids:
        reason = f"{len(ids)} runs begin so: {', '.join(ids[:_MOST])}"
        raise UserError(f"run {word!r}: {reason}; `moelaws runs` lists them")
    words, found = {*word.split()}, []
    for record in all_records(results) if words else ():
        config = config_of(record)
        if config is not None and words <= {*name_of(config).split()}:
            found.append(record)
    if len(found) == 1:
        return found[0]
    if not found:
        raise UserError(f"run {word!r}: no such run; `moelaws runs` lists them")
    apart = dict([*differences(*(record.config for record in found)).items()][:_MOST])
    each = [
        " ".join(
            [r.run_id[:8], *(f"{key.rpartition('.')[2]}={row[i]}" for key, row in apart.items())]
        )
        for i, r in enumerate(found[:_MOST])
    ]
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    raise UserError(f"run {word!r} may be {' or '.join(each)}{more}; give an id of these")
