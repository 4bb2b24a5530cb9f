"""Names by which people call runs, such as ``d48 E32 2e11 s0``; runs by them, and their table."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from moelaws.accounting.flops import train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.files.layout import Results
from moelaws.records.runs import Record, all_records, differences, flatten, read_record
from moelaws.spec.errors import UserError, listed, or_nearest
from moelaws.spec.from_toml import table_beside
from moelaws.spec.model import MoE
from moelaws.spec.rows import names_in, parse_rows, select
from moelaws.spec.run import RunConfig

_MOST = 5  # runs that a message names


def flops_of(config: RunConfig) -> float:
    """Returns a run's training FLOPs by the sparsity paper's convention (Eq 9)."""
    return train_flops_per_token(config.model, "sparsity") * config.tokens


def name_of(config: RunConfig) -> str:
    """Returns a run's name: its width, its experts, its training FLOPs and its seed.

    Runs that differ in something else, such as the learning rate, share a name.
    """
    ffn = config.model.ffn
    experts = ffn.n_experts if isinstance(ffn, MoE) else None
    return _name(config.model.d_model, experts, flops_of(config), config.seed)


def name_of_row(row: Mapping[str, Any]) -> str | None:
    """Returns the name of a run by its row of a table; None if the row lacks a part of it."""
    parts: list[Any] = [row.get(column) for column in ("d_model", "E", "C_sparsity", "seed")]
    if any(part is None or part != part for part in parts):  # NaN is not equal to itself
        return None
    width, experts, flops, seed = parts
    return _name(int(width), int(experts) if row.get("kind") == "moe" else None, flops, int(seed))


def _name(width: int, experts: int | None, flops: float, seed: int) -> str:
    budget = f"{flops:.2g}".replace("e+", "e")
    return f"d{width} {'dense' if experts is None else f'E{experts}'} {budget} s{seed}"


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


def find_records(results: Results, word: str) -> list[Record]:
    """Returns the runs whose id begins with ``word``, or whose name has its words."""
    ids = sorted(p.name for p in results.runs.glob(f"{word}*")) if word.isalnum() else []
    records, words = [read_record(results, run) for run in ids], {*word.split()}
    # Ids may begin with a name's word, such as d48 or 2e11.
    if words and (not ids or re.fullmatch(r"d\d+|\d+e\d+", word)):
        configs = ((record, config_of(record)) for record in all_records(results))
        named = (r for r, config in configs if config and words <= {*name_of(config).split()})
        records += [record for record in named if record.run_id not in ids]
    if not records:
        raise UserError(f"run {word!r}: no such run; `moelaws runs` lists them")
    return records


def find_record(results: Results, word: str) -> Record:
    """Returns the one run of ``find_records``.

    A UserError lists the runs that may be meant, with the first things in which they differ.
    """
    records = find_records(results, word)
    if len(records) == 1:
        return records[0]
    apart, each = [*differences(*(record.config for record in records)).items()][:2], []
    for i, record in enumerate(records):
        values = (f"{key.rpartition('.')[2]}={row[i]}" for key, row in apart)
        each.append(" ".join([record.run_id[:8], *values]))
    raise UserError(f"run {word!r} may be any of {listed(each, _MOST)}; `moelaws runs` lists them")


HEADINGS: dict[str, str] = table_beside(__file__)  # of the table -> key of the record

Row = dict[str, Any]  # column -> value; a run has no key, or None, where nothing is on record


def rows_of(records: Iterable[Record], expression: str = "") -> list[tuple[Record, Row]]:
    """Returns the ``records`` in which ``expression`` holds, each with its row of the table.

    A row has all keys of a run's record, its name and sizes, and ``HEADINGS``.
    """
    rows = [(record, _row(record)) for record in records]
    known = dict.fromkeys(key for _, row in rows for key in row)
    unknown = {clause.column for clause in parse_rows(expression)} - {*known}
    if rows and unknown:
        near = or_nearest(name := min(unknown), known, "known are")
        raise UserError(f"no run has a column {name!r}{near}")
    names = names_in(expression) & known.keys()
    return [(r, row) for r, row in rows if select({n: row.get(n) for n in names}, expression)]


def _row(record: Record) -> Row:
    row, made_by, config = flatten(record.as_dict()), record.provenance, config_of(record)
    if record.config:
        row.setdefault("config.seed", 0)  # the default, which stands in no configuration
    row |= {heading: row.get(key) for heading, key in HEADINGS.items()}
    row |= sizes_of(config) if config else {}
    row["id"] = record.run_id[:8]
    row["commit"] = (made_by.get("commit") or "")[:8] + "+" * bool(made_by.get("dirty"))
    row["tags"] = record.annotations.text or None
    return row
