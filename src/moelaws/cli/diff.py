"""``moelaws diff``: what differs between runs."""

from typing import Any

import click

from moelaws.cli.answers import JsonCommand, print_json, print_table
from moelaws.files.layout import Results
from moelaws.records.names import config_of, find_record, name_of
from moelaws.records.paired import UnpairedError, paired_losses
from moelaws.records.runs import differences
from moelaws.spec.errors import UserError


@click.command(name="diff", cls=JsonCommand)
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True)
def command(runs: tuple[str, ...], as_json: bool) -> None:
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
    if as_json:
        listed: list[dict[str, Any]] = [{"run": run, **d} for run, d in compared.items()]
        losses = compared[ids[1]] if len(ids) == 2 else listed
        print_json({key: list(row) for key, row in rows.items()} | {"loss_difference": losses})
        return
    names = [name_of(config) if (config := config_of(r)) else "-" for r in records]
    cells = [["run", *names], *([key, *map(str, row)] for key, row in rows.items())]
    print_table(["key", *ids], cells)
    for other, loss in compared.items():
        if "unpaired" in loss:
            click.echo(f"the difference of the losses has no paired error: {loss['unpaired']}")
            continue
        click.echo(
            f"loss of {ids[0]} less that of {other}: {loss['value']:.4f} nats/token, standard "
            f"error {loss['standard_error']:.2g} (paired, over {loss['documents']} documents; "
            "another seed would change it too)"
        )


def _loss_difference(run_ids: list[str]) -> dict[str, Any]:
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
