"""The list of runs: its columns, the selection and order of runs, and groups over seeds."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from moelaws.records.runs import Record, flatten
from moelaws.spec.errors import UserError, listed, or_nearest
from moelaws.spec.rows import parse_rows

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
COLUMNS = ("run_id", "status", *HEADINGS, "commit")
WORDS = ("tags", "note")  # columns that are shown only if some run has them
GROUPED = ("run_id", "ffn", "d_model", "E", "steps", "lr", "n", "L", "L_sd", "seconds")
MEMBERS = "run_ids"
_SD = "_sd"

Getter = Callable[[Record], Any]


@dataclass(frozen=True)
class Listing:
    """Rows of a list: each is a run, or a group of runs that differ in their seed alone.

    A column is a heading, a key of the record such as ``summary.tokens``, or the last word of a
    key, such as ``tokens``, if no other key ends so.
    """

    rows: Sequence[tuple[Record, ...]]  # the runs of each row, by seed
    code: str  # the digest of today's training code; a run of other code is stale
    grouped: bool = False

    @classmethod
    def of(cls, records: Sequence[Record], code: str) -> Listing:
        """Returns a row for each record."""
        return cls([(record,) for record in records], code)

    @property
    def records(self) -> list[Record]:
        """Returns the runs of all rows."""
        return [record for row in self.rows for record in row]

    def where(self, expression: str) -> Listing:
        """Returns the rows in which ``expression`` holds, ``COLUMN OP NUMBER [and ...]``."""
        clauses = parse_rows(expression)
        columns = {clause.column: self.column(clause.column) for clause in clauses}
        for name, values in columns.items():
            if text := next((v for v in values if isinstance(v, str)), ""):
                raise UserError(
                    f"--where {expression!r}: {name} is {text!r} in some run, which is no number; "
                    "--status and --tag select by text"
                )
        rows = [
            row
            for i, row in enumerate(self.rows)
            if all(clause.holds(columns[clause.column][i]) for clause in clauses)
        ]
        return Listing(rows, self.code, self.grouped)

    def group(self) -> Listing:
        """Returns one row for all runs whose configurations differ in their seed alone.

        Its ``run_id`` is that of the lowest seed, ``run_ids`` are those of all, and ``n`` is how
        many have a loss. A number of the summary, such as L, is the mean over the runs that have
        it. With ``_sd`` at the end of its name it is their standard deviation, which a single run
        does not have. Any other column has a value only if it is the same for all runs.
        """
        groups: dict[str, list[Record]] = {}
        for record in self.records:
            config = {key: value for key, value in record.config.items() if key != "seed"}
            key = json.dumps(config, sort_keys=True) if config else record.run_id
            groups.setdefault(key, []).append(record)
        rows = [tuple(sorted(g, key=lambda r: _seed(r) or 0)) for g in groups.values()]
        return Listing(rows, self.code, grouped=True)

    def sort(self, name: str, descending: bool = False) -> Listing:
        """Returns the rows sorted by a column; those without a value come last."""
        pairs = list(zip(self.column(name), self.rows, strict=True))
        have = [pair for pair in pairs if pair[0] is not None]
        texts = any(not isinstance(value, int | float) for value, _ in have)
        have.sort(key=lambda pair: str(pair[0]) if texts else pair[0], reverse=descending)
        rows = [row for _, row in have] + [row for value, row in pairs if value is None]
        return Listing(rows, self.code, self.grouped)

    def column(self, name: str) -> list[Any]:
        """Returns the value of a column in each row, or None if a row has none."""
        if not self.grouped:
            getter = self._getter(name)
            return [getter(row[0]) for row in self.rows]
        if name == MEMBERS:
            return [[record.run_id for record in row] for row in self.rows]
        if name == "run_id":
            return [row[0].run_id for row in self.rows]
        if name == "n":
            losses = ([record.summary.get("loss") for record in row] for row in self.rows)
            return [sum(isinstance(loss, int | float) for loss in row) for row in losses]
        spread = name.endswith(_SD)
        name = name.removesuffix(_SD)
        getter = self._getter(name)
        measured = self._key(name).startswith("summary.")
        if spread and not measured:
            raise UserError(
                f"column {name + _SD!r}: {name} was not measured; a standard deviation has what "
                "stands in the summary, such as L_sd"
            )
        return [_summed_up([getter(r) for r in row], measured, spread) for row in self.rows]

    def _getter(self, name: str) -> Getter:
        """Returns the function that gives a column's value in one run."""
        if name in self._made:
            return self._made[name]
        first, _, rest = self._key(name).partition(".")
        if first == "tags":
            return lambda record: record.annotations.tags.get(rest)
        keys = rest.split(".")

        def get(record: Record) -> Any:
            value: Any = getattr(record, first, None)
            for key in keys:
                value = value.get(key) if isinstance(value, dict) else None
            return value

        return get

    @cached_property
    def _made(self) -> dict[str, Getter]:
        """Returns the columns that are not simply a key of the record's files."""
        return {
            "run_id": lambda r: r.run_id,
            "status": lambda r: r.status + (" (stale)" if r.is_stale(self.code) else ""),
            "stale": lambda r: r.is_stale(self.code),
            "seed": _seed,
            "config.seed": _seed,
            "commit": _commit,
            "tags": lambda r: r.annotations.text or None,
            "note": lambda r: " ".join(r.annotations.note.split()) or None,
        }

    def _key(self, name: str) -> str:
        """Returns the key of the record that a column shows."""
        if name in HEADINGS or name in self._made:
            return HEADINGS.get(name, name)
        known = self._known
        ends = [name] if name in known else [key for key in known if key.endswith(f".{name}")]
        if len(ends) == 1:
            return ends[0]
        if ends:
            raise UserError(f"column {name!r} may be any of {listed(ends)}; name one of these")
        if not self.rows:
            return name
        words = dict.fromkeys((*COLUMNS, *WORDS, *(key.rpartition(".")[2] for key in known)))
        raise UserError(f"no run has a column {name!r}{or_nearest(name, words, 'known are')}")

    @cached_property
    def _known(self) -> dict[str, None]:
        """Returns the keys of all records, which are needed only if a column is no heading."""
        rows = (flatten(record.as_dict(self.code)) for record in self.records)
        return {key: None for row in rows for key in row if "." in key}


def _seed(record: Record) -> int | None:
    """Returns a run's seed: 0 if its configuration has the default, None if that is damaged."""
    seed = record.config.get("seed", 0)
    return seed if record.config and isinstance(seed, int) else None


def _commit(record: Record) -> str:
    dirty = "+" if record.provenance.get("dirty") else ""
    return (record.provenance.get("commit") or "")[:8] + dirty


def _summed_up(values: Sequence[Any], measured: bool, spread: bool) -> Any:
    """Returns the mean or spread of measured values; for others, the value that all share."""
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if not measured or len(numbers) < sum(value is not None for value in values):
        return values[0] if all(value == values[0] for value in values) else None
    if spread:
        return statistics.stdev(numbers) if len(numbers) > 1 else None
    return statistics.fmean(numbers) if numbers else None
