"""``moelaws show``: one run's record, or what a file was made of; ``diff``: how runs differ."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from moelaws.cli.answers import Answer, JsonCommand, table_text
from moelaws.files.layout import Results
from moelaws.records.chain import Link, changed_runs, link
from moelaws.records.listing import rows_of
from moelaws.records.names import find_record
from moelaws.records.runs import differences, flatten, read_record
from moelaws.spec.errors import UserError
from moelaws.spec.words import counted

# What made the runs of a table -> column of the list of runs
TRAINED_BY = {
    "commit": "provenance.commit",
    "changes that were not committed": "provenance.dirty",
    "training code": "provenance.code",
    "text": "config.corpus.source.name",
    "commit of the text": "config.corpus.source.commit",
    "digest of the text": "config.corpus.source.digest",
    "host": "host",
}


@click.command(name="show", cls=JsonCommand)
@click.argument("what", metavar="RUN|FILE")
def command(what: str) -> Answer:
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
        return data, table_text(("key", "value"), rows)
    top = link(path.with_suffix(".json") if "figures" in path.parts else path)
    if top.state == "missing":
        raise UserError(f"{top.path}: no such file; run the workflow first")
    files = [
        ("  " * depth + str(x.path), x.state, x.digest[:16], x.origin.code or "-")
        for depth, x in _below(top)
    ]
    table = table_text(("file", "state", "digest", "made by code"), files)
    return top.as_dict(), "\n".join([table, *_runs(top)])


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


@click.command(name="diff", cls=JsonCommand)
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True)
def diff(runs: tuple[str, ...]) -> Answer:
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
    listed: list[dict[str, Any]] = [{"run": run, **d} for run, d in compared.items()]
    losses = compared[ids[1]] if len(ids) == 2 else listed
    data = {key: list(row) for key, row in rows.items()} | {"loss_difference": losses}
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


def _loss_difference(run_ids: list[str]) -> dict[str, Any]:
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
