"""The list of runs: its columns, and the selection and order of runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from moelaws.records.names import config_of, sizes_of
from moelaws.records.runs import Record, flatten
from moelaws.spec.errors import UserError, listed, or_nearest
from moelaws.spec.rows import names_in, parse_rows, select

# Heading -> key of the record
HEADINGS = {
    "ffn": "config.model.ffn.kind",
    "d_model": "config.model.d_model",
    "E": "config.model.ffn.n_experts",
    "steps": "config.steps",
    "lr": "config.optimizer.lr",
    "seed": "config.seed",
    "L": "summary.loss",
    "L_se": "summary.loss_se",
    "seconds": "summary.wall_seconds",
    "started": "provenance.started",
}
SIZES = ("C", "S", "N", "N_active")  # columns of numbers that follow from the configuration
# The columns of the list. A terminal that is too narrow for all shows the first ones.
COLUMNS = (
    "name", "C", "S", "N", "L", "id", "status", "seconds", "tags", "note", "started", "steps",
    "lr", "commit",
)  # fmt: skip
WORDS = ("tags", "note")  # that are shown only if some run has them


@dataclass(frozen=True)
class Listing:
    """The runs of a list, in its order.

    A column is a heading, a key of the record such as ``summary.tokens``, or the last word of a
    key, such as ``tokens``, if no other key ends so.
    """

    records: Sequence[Record]
    rows: Mapping[str, Mapping[str, Any]]  # run -> its columns, for more runs than ``records``

    @classmethod
    def of(cls, records: Iterable[Record], code: str) -> Self:
        """Returns the list of ``records``; a run that other training code made is stale."""
        own = list(records)
        return cls(own, {record.run_id: row_of(record, code) for record in own})

    def where(self, expression: str) -> Self:
        """Returns the runs in which ``expression`` holds, ``COLUMN OP VALUE [and ...]``."""
        named = {clause.column for clause in parse_rows(expression)}
        columns = [*named, *(names_in(expression) & {*HEADINGS, *SIZES})]
        cells = zip(self.records, self.table(columns), strict=True)
        kept = [r for r, row in cells if select(dict(zip(columns, row, strict=True)), expression)]
        return replace(self, records=kept)

    def sort(self, name: str, descending: bool = False) -> Self:
        """Returns the runs sorted by a column; those without a value come last."""
        pairs = [(row[0], r) for row, r in zip(self.table([name]), self.records, strict=True)]
        have = [pair for pair in pairs if pair[0] is not None]
        texts = any(not isinstance(value, int | float) for value, _ in have)
        have.sort(key=lambda pair: str(pair[0]) if texts else pair[0], reverse=descending)
        last = [record for value, record in pairs if value is None]
        return replace(self, records=[*(record for _, record in have), *last])

    def table(self, names: Sequence[str]) -> list[list[Any]]:
        """Returns a row for each run, with None for what a run does not have."""
        keys = list(map(self._key, names))
        return [[self.rows[record.run_id].get(key) for key in keys] for record in self.records]

    def _key(self, name: str) -> str:
        words = dict.fromkeys((*COLUMNS, *HEADINGS, *SIZES))
        if name in words:
            return name
        known = dict.fromkeys(key for row in self.rows.values() for key in row)
        if not known or name in known:
            return name
        ends = [key for key in known if key.endswith(f".{name}")]
        if len(ends) == 1:
            return ends[0]
        if ends:
            raise UserError(f"column {name!r} may be any of {listed(ends)}; name one of these")
        words |= dict.fromkeys(key.rpartition(".")[2] for key in known)
        raise UserError(f"no run has a column {name!r}{or_nearest(name, words, 'known are')}")


def row_of(record: Record, code: str) -> dict[str, Any]:
    """Returns the columns of a run: all keys of its record, its sizes, and the list's headings."""
    row, made_by, config = flatten(record.as_dict(code)), record.provenance, config_of(record)
    if record.config:
        row.setdefault("config.seed", 0)  # the default, which stands in no configuration
    row |= {heading: row.get(key) for heading, key in HEADINGS.items()}
    row |= sizes_of(config) if config else {}
    row["id"] = record.run_id[:8]
    row["status"] += " (stale)" * row["stale"]
    row["commit"] = (made_by.get("commit") or "")[:8] + "+" * bool(made_by.get("dirty"))
    row["tags"] = record.annotations.text or None
    row["note"] = " ".join(record.annotations.note.split()) or None
    return row
