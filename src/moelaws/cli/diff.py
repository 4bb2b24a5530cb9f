"""``moelaws diff``: what differs between two runs."""

from __future__ import annotations

from typing import Any

import click

from moelaws.cli.output import json_option, print_json, print_table
from moelaws.records.layout import Results
from moelaws.records.runs import differences, find_record


@click.command(name="diff")
@click.argument("a")
@click.argument("b")
@json_option
def command(a: str, b: str, as_json: bool) -> None:
    """Show what differs between runs A and B: configuration, code, packages, results.

    Their losses are compared as A less B, so a negative difference means that A is better. It has a
    standard error paired by document, where both were measured on the same documents. In the JSON
    it is loss_difference: value (A less B), standard_error, unit, documents; or unpaired, the
    reason why there is no paired error.
    """

    records = [find_record(Results(), run) for run in (a, b)]
    pairs = differences(records[0].as_dict(), records[1].as_dict())
    difference = _loss_difference([record.run_id for record in records])
    if as_json:
        print_json(
            {key: list(pair) for key, pair in pairs.items()} | {"loss_difference": difference}
        )
        return
    rows = [[key, str(left), str(right)] for key, (left, right) in pairs.items()]
    print_table(["key", records[0].run_id, records[1].run_id], rows)
    if "unpaired" in difference:
        click.echo(f"the difference of the losses has no paired error: {difference['unpaired']}")
        return
    click.echo(
        f"loss of {records[0].run_id} less that of {records[1].run_id}: "
        f"{difference['value']:.4f} nats/token, standard error "
        f"{difference['standard_error']:.2g} (paired, over "
        f"{difference['documents']} documents; another seed would change it too)"
    )


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
