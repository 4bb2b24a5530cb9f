"""The list of runs: its columns, and the selection and order of runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
# The columns of the list, of which a narrow terminal shows the first ones
COLUMNS = (
    "name", "C", "S", "N", "L", "id", "status", "seconds", "tags", "note", "started", "steps",
    "lr", "commit",
)  # fmt: skip
WORDS = ("tags", "note")  # that are shown only if some run has them

Getter = Callable[[Record], Any]


@dataclass(frozen=True)
class Listing:
    """The runs of a list, in its order.

    A column is a heading, a key of the record such as ``summary.tokens``, or the last word of a
    key, such as ``tokens``, if no other key ends so.
    """

    records: Sequence[Record]
    code: str  # the digest of today's training code; a run of other code is stale

    def where(self, expression: str) -> Self:
        """Returns the runs in which ``expression`` holds, ``COLUMN OP VALUE [and ...]``."""
        columns = {clause.column for clause in parse_rows(expression)}
        compared = names_in(expression) & {*HEADINGS, *SIZES}
        getters = {name: self._getter(name) for name in columns | compared}
        records = [
            record
            for record in self.records
            if select({name: get(record) for name, get in getters.items()}, expression)
        ]
        return replace(self, records=records)

    def sort(self, name: str, descending: bool = False) -> Self:
        """Returns the runs sorted by a column; those without a value come last."""
        pairs = list(zip(self.column(name), self.records, strict=True))
        have = [pair for pair in pairs if pair[0] is not None]
        texts = any(not isinstance(value, int | float) for value, _ in have)
        have.sort(key=lambda pair: str(pair[0]) if texts else pair[0], reverse=descending)
        last = [record for value, record in pairs if value is None]
        return replace(self, records=[*(record for _, record in have), *last])

    def column(self, name: str) -> list[Any]:
        """Returns the value of a column in each run, or None if a run has none."""
        return list(map(self._getter(name), self.records))

    def _getter(self, name: str) -> Getter:
        if name in self._made:
            return self._made[name]
        if name in ("name", *SIZES):
            return lambda record: self._sizes[record.run_id].get(name)
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
            "id": lambda r: r.run_id[:8],
            "status": lambda r: r.status + (" (stale)" if r.is_stale(self.code) else ""),
            "stale": lambda r: r.is_stale(self.code),
            "seed": _seed,
            "config.seed": _seed,
            "commit": lambda r: (
                (r.provenance.get("commit") or "")[:8] + "+" * bool(r.provenance.get("dirty"))
            ),
            "tags": lambda r: r.annotations.text or None,
            "note": lambda r: " ".join(r.annotations.note.split()) or None,
        }

    @cached_property
    def _sizes(self) -> dict[str, dict[str, Any]]:
        configs = {record.run_id: config_of(record) for record in self.records}
        return {run: sizes_of(config) if config else {} for run, config in configs.items()}

    def _key(self, name: str) -> str:
        if name in HEADINGS or name in self._made:
            return HEADINGS.get(name, name)
        known = self._known
        ends = [name] if name in known else [key for key in known if key.endswith(f".{name}")]
        if len(ends) == 1:
            return ends[0]
        if ends:
            raise UserError(f"column {name!r} may be any of {listed(ends)}; name one of these")
        if not self.records:
            return name
        words = dict.fromkeys(
            (*COLUMNS, *HEADINGS, *SIZES, *(key.rpartition(".")[2] for key in known))
        )
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
