"""``moelaws runs``: what was trained, what failed, what other code made; ``tag`` and ``note``."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from moelaws.cli.answers import Answer, JsonCommand, print_answer, print_json, table_text
from moelaws.cli.common import COUNT, NAMES, Words, gathered, option
from moelaws.files.layout import Results
from moelaws.records.code import training_code
from moelaws.records.listing import COLUMNS, WORDS, Listing
from moelaws.records.names import find_record, find_records
from moelaws.records.runs import STATUSES, UNSUCCESSFUL, Record, all_records, annotate, retry
from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json
from moelaws.spec.words import counted, short


@dataclass(frozen=True)
class Selection:
    """Which runs a command is about."""

    status: str | None
    stale: bool
    tags: Words
    where: str

    def of(self, results: Results, chosen: Iterable[str], by_one: bool = False) -> Listing:
        """Returns the selected runs among those ``chosen`` by id or name, or among all on record.

        ``by_one`` refuses a name that several runs share.
        """
        code = training_code()
        named = [
            record
            for word in chosen
            for record in ([find_record(results, word)] if by_one else find_records(results, word))
        ]
        records = [*{r.run_id: r for r in named}.values()] or all_records(results)
        selected = [record for record in records if self._holds(record, code)]
        return Listing.of(selected, code).where(self.where)

    def _holds(self, record: Record, code: str) -> bool:
        if self.status not in (None, record.status) or (self.stale and not record.is_stale(code)):
            return False
        own = record.annotations.tags
        required = [tag.partition("=") for tag in self.tags]
        return all(own.get(n) == v if equals else n in own for n, equals, v in required)


# Adds the options that select runs; the command receives ``selection``.
selection_options = gathered(
    "selection",
    Selection,
    option("--status", "Only runs in this state.", click.Choice(STATUSES)),
    option("--stale", "Only runs that other training code made.", is_flag=True),
    option(
        "--tag tags",
        "Only runs with this tag, whatever its value or with this one.",
        multiple=True,
        metavar="NAME[=VALUE]",
    ),
    option(
        "--where",
        "Only runs in which EXPR holds: COLUMN OP VALUE [and ...], as in 'L < 4 and E == 8'.",
        default="",
        metavar="EXPR",
    ),
)


@click.command(name="runs", cls=JsonCommand)
@click.argument("chosen", metavar="[RUN]...", nargs=-1)
@selection_options
@option("--sort", "The column by which the list is ordered.", metavar="COLUMN")
@option("--descending", "The greatest value of --sort comes first.", is_flag=True)
@option("--columns", "The columns to show.", NAMES)
@option("--limit", "Show only so many.", COUNT)
@option("--cost", "Show what they took instead: hours of cores or GPUs, by study.", is_flag=True)
@option(
    "--retry again",
    "Ask again for the runs that failed or are damaged, for all stale ones with --stale, "
    "and for each RUN that is named.",
    is_flag=True,
)
def command(
    chosen: Words,
    selection: Selection,
    sort: str | None,
    descending: bool,
    columns: list[str] | None,
    limit: int | None,
    cost: bool,
    again: bool,
    as_json: bool,
) -> None:
    """List the runs on record, or each RUN: sizes, loss, times, status, code.

    RUN is an id or its beginning, or a name such as 'd48 E32 2e11 s0' (width, experts, training
    FLOPs, seed), which several runs may share. A terminal's width cuts the list, unless --columns
    names what it has. A COLUMN is a heading of the list, a key of a run's record such as
    summary.tokens (`moelaws show RUN` lists them), or the last word of a key, such as tokens.
    """
    results = Results()
    if not results.root.is_dir():
        raise UserError(f"there is no folder {results.root.absolute()}; run the workflow first")
    listing = selection.of(results, chosen, by_one=again)
    if again:
        of_all = bool(chosen) or selection.stale
        retried = [r for r in listing.records if r.status in UNSUCCESSFUL or (of_all and r.summary)]
        for record in retried:
            retry(results, record)
        click.echo(
            f"{counted(len(retried), 'run')} will be trained at the next call of snakemake",
            err=True,
        )
    if cost:
        hours = by_study(results, listing.records)
        titles = ("study", "tier", "runs", "device", "hours")
        print_answer(as_json, hours, table_text(titles, [list(row.values()) for row in hours]))
        return
    listing = listing.sort(sort, descending) if sort else listing
    total = len(listing.records)
    listing = replace(listing, records=listing.records[:limit])
    if as_json and columns is None:
        named = zip(listing.table(["name"]), listing.records, strict=True)
        print_json([{"name": name, **record.as_dict()} for [name], record in named])
        return
    names = columns or [n for n in COLUMNS if n not in WORDS or any(map(any, listing.table([n])))]
    rows = listing.table(names)
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    cells = [list(map(_cell, names, row)) for row in rows]
    table = table_text(names, cells, cut=columns is None)
    of = f" of {total:,}" if len(rows) < total else ""
    click.echo(f"{table}\n{counted(len(rows), 'run')}{of}")


def _cell(name: str, value: Any) -> object:
    """Returns a size as people write it, and a status in one word."""
    if name in ("N", "N_active") and value is not None:
        return short(value, 4)
    return "stale" if value == "completed (stale)" else value


def device_hours(record: Record) -> tuple[str, float]:
    """Returns what trained and evaluated a run, and the hours of one such core or GPU.

    A fraction of a GPU counts as such, and what came before an interruption as the last device's.
    Shared steps count for the run that trained them.
    """
    made_by, summary = record.provenance, record.summary
    hours = (summary.get("wall_seconds", 0.0) - summary.get("shared_seconds", 0.0)) / 3600
    if (device := str(made_by.get("device") or "unknown")) == "cpu":
        return "CPU core", hours * (made_by.get("threads") or 1)
    return device, hours * (made_by.get("devices") or 1) * (made_by.get("gpu_share") or 1)


def by_study(results: Results, records: Iterable[Record]) -> list[dict[str, Any]]:
    """Returns the hours of the runs that have ended, for each study of each tier and in sum.

    A run counts in every study whose table has it, and once in the sum.
    """
    ended = {record.run_id: device_hours(record) for record in records if record.summary}
    groups: dict[tuple[str, str], set[str]] = {}
    for file in sorted(results.root.glob(str(Results(Path()).tier("*").spec("runs", "*")))):
        lines = file.read_text(encoding="utf-8").splitlines()[1:]
        groups[file.stem, file.parents[2].name] = {parse_json(line, str(file))[0] for line in lines}
    groups["of no study", "-"] = ended.keys() - set().union(*groups.values())
    groups["in sum", "-"] = {*ended}
    hours: dict[tuple[str, str, str], list[float]] = {}
    for group, runs in groups.items():
        for device, each in sorted(ended[run] for run in runs & ended.keys()):
            hours.setdefault((*group, device), []).append(each)
    return [
        {"study": study, "tier": tier, "runs": len(each), "device": device, "hours": sum(each)}
        for (study, tier, device), each in hours.items()
    ]


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
