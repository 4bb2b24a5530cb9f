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
    on the same documents.
    """
    from moelaws.records.layout import Results
    from moelaws.records.paired import paired_losses
    from moelaws.records.runs import differences, find_record

    records = [find_record(Results(), run) for run in (a, b)]
    pairs = differences(records[0].as_dict(), records[1].as_dict())
    if as_json:
        print_json({key: list(pair) for key, pair in pairs.items()})
    else:
        rows = [[key, str(left), str(right)] for key, (left, right) in pairs.items()]
        print_table(["key", records[0].run_id, records[1].run_id], rows)
        if paired := paired_losses(Results(), [record.run_id for record in records]):
            left, right = paired.losses
            click.echo(
                f"loss of {records[0].run_id} less that of {records[1].run_id}: "
                f"{left - right:.4f} nats/token, standard error "
                f"{float(paired.standard_error([1, -1])):.2g} (paired, over {len(paired.tokens)} "
                "documents; another seed would change it too)"
            )
