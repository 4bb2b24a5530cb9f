"""The table of runs, which ``moelaws runs`` lists and ``moelaws query`` reads."""

from collections.abc import Iterable
from typing import Any

from moelaws.records.names import config_of, sizes_of
from moelaws.records.runs import Record, flatten
from moelaws.spec.errors import UserError, or_nearest
from moelaws.spec.rows import names_in, parse_rows, select

# Heading -> key of the record
HEADINGS = {
    "ffn": "config.model.ffn.kind",
    "d_model": "config.model.d_model",
    "E": "config.model.ffn.n_experts",
    "steps": "config.steps",
    "lr": "config.optimizer.lr",
    "seed": "config.seed",
    "tokens": "summary.tokens",
    "L": "summary.loss",
    "L_se": "summary.loss_se",
    "bits_per_byte": "summary.bits_per_byte",
    "seconds": "summary.wall_seconds",
    "started": "provenance.started",
    "device": "provenance.device",
    "host": "provenance.host",
}

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
