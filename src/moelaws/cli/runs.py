"""``moelaws runs``: what was trained, what failed, what other code made."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from moelaws.cli.answers import JsonCommand, print_answer, print_json, table_text
from moelaws.cli.common import COUNT, NAMES, Words, gathered, option
from moelaws.files.layout import Results
from moelaws.records.code import training_code
from moelaws.records.listing import COLUMNS, WORDS, Listing
from moelaws.records.names import find_record, find_records
from moelaws.records.runs import STATUSES, UNSUCCESSFUL, Record, all_records, retry
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
        return Listing(selected, code).where(self.where)

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
        data = [record.as_dict(listing.code) for record in listing.records]
        print_json([{"name": n, **r} for n, r in zip(listing.column("name"), data, strict=True)])
        return
    names = columns or [n for n in COLUMNS if n not in WORDS or any(listing.column(n))]
    rows = list(zip(*(listing.column(name) for name in names), strict=True))
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    cells = [list(map(_cell, names, row)) for row in rows]
    table = table_text(names, cells, cut=columns is None)
    of = f" of {total:,}" if len(rows) < total else ""
    nowhere = "" if results.runs.is_dir() else f"; there is no folder {results.runs.absolute()}"
    click.echo(f"{table}\n{counted(len(rows), 'run')}{of}{nowhere}")


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
