"""``moelaws runs``, ``tag``, ``note``, ``show`` and ``diff``: the record of what was trained."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from moelaws.cli.common import Answer, Data, Words, gathered, json_command, option, table_text
from moelaws.files.layout import Results
from moelaws.records.chain import Link, changed_runs, link
from moelaws.records.names import Row, find_record, find_records, rows_of
from moelaws.records.runs import (
    UNSUCCESSFUL,
    Record,
    all_records,
    annotate,
    differences,
    flatten,
    read_record,
    retry,
)
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.spec.model import Model
from moelaws.spec.words import counted, on_one_line, short

COLUMNS, OPTIONAL, TRAINED_BY = table_beside(__file__).values()


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


@json_command
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
    names = [n for n in COLUMNS if n not in OPTIONAL or any(row[n] for row in rows)]
    table = table_text(names, [[_cell(name, row) for name in names] for row in rows], cut=True)
    return data, f"{table}\n{counted(len(rows), 'run')}"


def _cell(name: str, row: Row) -> object:
    """Returns a size as people write it, a note on one line, and a status in few words."""
    value = row.get(name)
    if name == "N" and value is not None:
        return short(value, 4)
    if name == "note":
        return on_one_line(str(value)) or None
    if name == "status" and row["stale"]:
        return "stale" if value == "completed" else f"{value} (stale)"
    return value


@json_command
@click.argument("words", metavar="RUN... NAME=VALUE...", nargs=-1, required=True)
def tag(words: Words) -> Answer:
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


@json_command
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.argument("text")
def note(runs: Words, text: str) -> Answer:
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
    rows = [(i, a.text, on_one_line(a.note)) for i, a in changed.items()]
    return data, table_text(["run_id", "tags", "note"], rows)


@json_command
@click.argument("what", metavar="RUN|FILE")
def show(what: str) -> Answer:
    """Show everything on record of RUN (an id, its beginning, or a name as `moelaws runs` has it).

    Of a FILE that the workflow made, show what it was made of: every file behind it by digest, back
    to the runs, their commits and their text.

    \b
    moelaws show 3fb1
    moelaws show results/demo/figures/sparsity/F7.pdf
    """
    path = Path(what)
    if not path.suffix or " " in what:  # which a run's name may have
        data = find_record(Results(), what).as_dict()
        rows = [(key, str(value)) for key, value in flatten(data).items()]
        return data, "\n".join([table_text(("key", "value"), rows), *_factors(data)])
    top = link(path.with_suffix(".json") if "figures" in path.parts else path)
    if top.state == "missing":
        raise UserError(f"{top.path}: no such file; run the workflow first")
    files = [
        ("  " * depth + str(x.path), x.state, x.digest[:16], x.origin.code or "-")
        for depth, x in _below(top)
    ]
    table = table_text(("file", "state", "digest", "made by code"), files)
    return top.as_dict(), "\n".join([table, *_runs(top)])


def _factors(record: Data) -> Iterator[str]:
    """Yields what settings are multiplied by in a run whose model has a base."""
    if "base" not in record["config"].get("model", {}):  # a run that waits has no configuration
        return
    from moelaws.model.listed_factors import listed_factors
    from moelaws.model.parameterization import multipliers

    model = parse(Model, record["config"]["model"], record["run_id"])
    each = listed_factors(model)
    rows = [(name, *map("{:.4g}".format, own)) for name, own in each.items()]
    yield table_text(("parameter", "deviation", "rate", "epsilon", "rate of Muon"), rows)
    forward = multipliers(model)._asdict().items()
    yield "outputs: " + ", ".join(f"{name} {factor:.4g}" for name, factor in forward)


def _below(link: Link, depth: int = 0) -> Iterator[tuple[int, Link]]:
    """Yields a link and all that its file was made of, with their depths."""
    yield depth, link
    for each in link.inputs:
        yield from _below(each, depth + 1)


def _runs(top: Link) -> Iterator[str]:
    """Yields lines on where the runs of every table in the chain are from: a file, or trainings."""
    for table in _tables(top, "imported"):
        yield f"\n{table.path}: imported"
        for name, text in table.origin.imported.items():
            yield f"  {name}: {text or 'not on record'}"
    for table in _tables(top, "runs"):
        changed = changed_runs(table, Results())
        since = f"{len(changed)} of them changed since: {', '.join(changed[:4])}"
        state = since if changed else "as they are"
        yield f"\n{table.path}: {counted(len(table.origin.runs), 'run')}, {state}"
        rows = [row for _, row in rows_of(read_record(Results(), run) for run in table.origin.runs)]
        for name, key in TRAINED_BY.items():
            for value, n in Counter(row[key] for row in rows if row.get(key)).most_common():
                yield f"  {name}: {value} ({counted(n, 'run')})"


def _tables(top: Link, origin: str) -> list[Link]:
    """Returns the tables in the chain that name their ``origin`` (runs, imported), each once."""
    return [*{x.path: x for _, x in _below(top) if getattr(x.origin, origin)}.values()]


@json_command
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True)
def diff(runs: Words) -> Answer:
    """Show what differs between two runs or more: configuration, code, packages, results.

    Each run has a column, and each key that is not the same in all of them has a row. The loss of
    the first run is compared with that of each other one: a negative difference means that the
    first is better. If both were measured on the same documents, the difference has a standard
    error paired by document.

    In the JSON each key has the list of its values. Of two runs, loss_difference is an object:
    value (the first less the second), standard_error, unit, documents; or unpaired, the reason why
    there is no paired error. Of more runs it is a list of such objects, each with its run.
    """
    records = [find_record(Results(), run) for run in runs]
    ids = [record.run_id for record in records]
    if len(set(ids)) < max(2, len(ids)):
        raise UserError(f"diff of {', '.join(runs)}: give two different runs or more, each once")
    rows = differences(*(record.as_dict() for record in records))
    compared = {other: _loss_difference([ids[0], other]) for other in ids[1:]}
    listed: list[Data] = [{"run": run, **d} for run, d in compared.items()]
    losses = compared[ids[1]] if len(ids) == 2 else listed
    data = {**rows, "loss_difference": losses}
    names = [row.get("name", "-") for _, row in rows_of(records)]
    cells = [["run", *names], *([key, *map(str, row)] for key, row in rows.items())]
    lines = [table_text(["key", *ids], cells)]
    for other, loss in compared.items():
        if "unpaired" in loss:
            lines.append(f"the difference of the losses has no paired error: {loss['unpaired']}")
            continue
        lines.append(
            f"loss of {ids[0]} less that of {other}: {loss['value']:.4f} nats/token, standard "
            f"error {loss['standard_error']:.2g} (paired, over {loss['documents']} documents; "
            "another seed would change it too)"
        )
    return data, "\n".join(lines)


def _loss_difference(run_ids: list[str]) -> Data:
    from moelaws.records.paired import UnpairedError, paired_losses

    try:
        losses = paired_losses(Results(), run_ids)
    except UnpairedError as error:
        return {"unpaired": str(error)}
    return {
        "value": float(losses.losses[0] - losses.losses[1]),
        "standard_error": float(losses.standard_error([1, -1])),
        "unit": "nats/token",
        "documents": len(losses.tokens),
    }
