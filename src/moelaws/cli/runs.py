"""``moelaws runs``: what was trained, what failed, what other code made; ``tag`` and ``note``."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import click

from moelaws.cli.answers import Answer, JsonCommand, table_text
from moelaws.cli.common import Words, gathered, option
from moelaws.files.layout import Results
from moelaws.records.listing import Row, rows_of
from moelaws.records.names import find_record, find_records
from moelaws.records.runs import UNSUCCESSFUL, Record, all_records, annotate, retry
from moelaws.spec.errors import UserError
from moelaws.spec.words import counted, short

# The columns of the list. A terminal that is too narrow for all shows the first ones.
COLUMNS = (
    "name", "C", "S", "N", "L", "id", "status", "seconds", "tags", "note", "started", "steps",
    "lr", "commit",
)  # fmt: skip
WORDS = ("tags", "note")  # that are shown only if some run has them


@dataclass(frozen=True)
class Selection:
    """Which runs a command is about."""

    stale: bool
    where: str

    def of(
        self, results: Results, chosen: Iterable[str], by_one: bool = False
    ) -> list[tuple[Record, Row]]:
        """Returns the selected runs among those ``chosen`` by id or name, or among all on record.

        ``by_one`` refuses a name that several runs share.
        """
        named = [
            record
            for word in chosen
            for record in ([find_record(results, word)] if by_one else find_records(results, word))
        ]
        records = [*{r.run_id: r for r in named}.values()] or all_records(results)
        rows = rows_of(records, self.where)
        return [(record, row) for record, row in rows if row["stale"] or not self.stale]


# Adds the options that select runs; the command receives ``selection``.
selection_options = gathered(
    "selection",
    Selection,
    option("--stale", "Only runs that other training code made.", is_flag=True),
    option(
        "--where",
        "Only runs in which EXPR holds: COLUMN OP VALUE [and ...], as in 'L < 4 and E == 8', "
        "'status == diverged' or 'tags.baseline == yes'.",
        default="",
        metavar="EXPR",
    ),
)


@click.command(name="runs", cls=JsonCommand)
@click.argument("chosen", metavar="[RUN]...", nargs=-1)
@selection_options
@option(
    "--retry again",
    "Ask again for the runs that failed or are damaged, for all stale ones with --stale, "
    "and for each RUN that is named.",
    is_flag=True,
)
def command(chosen: Words, selection: Selection, again: bool) -> Answer:
    """List the runs on record, or each RUN: sizes, loss, times, status, code.

    RUN is an id or its beginning, or a name such as 'd48 E32 2e11 s0' (width, experts, training
    FLOPs, seed), which several runs may share. A terminal's width cuts the list. A COLUMN is a
    heading of the list, or a key of a run's record such as summary.tokens (`moelaws show RUN` lists
    them). `moelaws query` gives any columns in any order, from the same table.
    """
    results = Results()
    if not results.root.is_dir():
        raise UserError(f"there is no folder {results.root.absolute()}; run the workflow first")
    listed = selection.of(results, chosen, by_one=again)
    if again:
        of_all = bool(chosen) or selection.stale
        retried = [r for r, _ in listed if r.status in UNSUCCESSFUL or (of_all and r.summary)]
        for record in retried:
            retry(results, record)
        click.echo(
            f"{counted(len(retried), 'run')} will be trained at the next call of snakemake",
            err=True,
        )
    data = [{"name": row.get("name"), **record.as_dict()} for record, row in listed]
    rows = [row for _, row in listed]
    names = [n for n in COLUMNS if n not in WORDS or any(row[n] for row in rows)]
    table = table_text(names, [[_cell(name, row) for name in names] for row in rows], cut=True)
    return data, f"{table}\n{counted(len(rows), 'run')}"


def _cell(name: str, row: Row) -> object:
    """Returns a size as people write it, a note on one line, and a status in few words."""
    value = row.get(name)
    if name == "N" and value is not None:
        return short(value, 4)
    if name == "note":
        return " ".join(str(value).split()) or None
    if name == "status" and row["stale"]:
        return "stale" if value == "completed" else f"{value} (stale)"
    return value


@click.command(name="tag", cls=JsonCommand)
@click.argument("words", metavar="RUN... NAME=VALUE...", nargs=-1, required=True)
def tag(words: tuple[str, ...]) -> Answer:
    """Give each RUN (an id, its beginning or a name) each tag NAME, with any text as its VALUE.

    An earlier VALUE is replaced; an empty VALUE removes the tag. Tags are kept beside the record
    and change neither the run nor what the workflow makes of it. `moelaws runs`, `show` and
    `query` show them.

    \b
    moelaws tag 3fb1 c02d baseline=yes optimizer=muon
    moelaws tag 3fb1 optimizer=
    """
    runs = [word for word in words if "=" not in word]
    if len(runs) in (0, len(words)):
        raise UserError("give one RUN or more, and one NAME=VALUE or more, such as baseline=yes")
    assigned = (word.partition("=") for word in words if "=" in word)
    return _annotate(runs, {name: value for name, _, value in assigned}, None)


@click.command(name="note", cls=JsonCommand)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.argument("text")
def note(runs: tuple[str, ...], text: str) -> Answer:
    """Write TEXT as the note of each RUN (an id, its beginning or a name), over an earlier one.

    An empty TEXT removes the note. It is kept beside the record and changes neither the run nor
    what the workflow makes of it.

    \b
    moelaws note 3fb1 "diverged after the node was rebooted"
    """
    return _annotate(runs, {}, text)


def _annotate(runs: Iterable[str], tags: Mapping[str, str], note: str | None) -> Answer:
    results = Results()
    # An unknown run is refused before any is changed.
    ids = dict.fromkeys(find_record(results, run).run_id for run in runs)
    changed = {run_id: annotate(results, run_id, tags, note) for run_id in ids}
    data = [{"run_id": i, "tags": a.tags, "note": a.note} for i, a in changed.items()]
    rows = [(i, a.text, " ".join(a.note.split())) for i, a in changed.items()]
    return data, table_text(["run_id", "tags", "note"], rows)
