"""``moelaws diff``: what differs between two runs."""

from __future__ import annotations

import click

from moelaws.cli.output import json_option, print_json, print_table


@click.command(name="diff")
@click.argument("a")
@click.argument("b")
@json_option
def command(a: str, b: str, as_json: bool) -> None:
    """Show what differs between runs A and B: configuration, code, packages, results.

    The difference of their losses has a standard error paired by document, where both were measured
    on the same documents (loss_difference in the JSON).
    """
    from moelaws.records.layout import Results
    from moelaws.records.paired import paired_losses
    from moelaws.records.runs import differences, find_record

    records = [find_record(Results(), run) for run in (a, b)]
    pairs = differences(records[0].as_dict(), records[1].as_dict())
    losses = paired_losses(Results(), [record.run_id for record in records])
    loss_difference = losses and {
        "value": float(losses.losses[0] - losses.losses[1]),
        "standard_error": float(losses.standard_error([1, -1])),
        "unit": "nats/token",
        "documents": len(losses.tokens),
    }
    if as_json:
        beside = {"loss_difference": loss_difference} if loss_difference else {}
        print_json({key: list(pair) for key, pair in pairs.items()} | beside)
        return
    rows = [[key, str(left), str(right)] for key, (left, right) in pairs.items()]
    print_table(["key", records[0].run_id, records[1].run_id], rows)
    if loss_difference:
        click.echo(
            f"loss of {records[0].run_id} less that of {records[1].run_id}: "
            f"{loss_difference['value']:.4f} nats/token, standard error "
            f"{loss_difference['standard_error']:.2g} (paired, over "
            f"{loss_difference['documents']} documents; another seed would change it too)"
        )
