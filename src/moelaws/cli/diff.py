"""``moelaws diff``: what differs between two runs."""

from __future__ import annotations

import click

from moelaws.cli.output import json_option, print_json, print_table


@click.command(name="diff")
@click.argument("a")
@click.argument("b")
@json_option
def command(a: str, b: str, as_json: bool) -> None:
    """Show what differs between runs A and B: configuration, code, packages, results."""
    from moelaws.records.layout import Results
    from moelaws.records.runs import differences, find_record

    records = [find_record(Results(), run) for run in (a, b)]
    pairs = differences(records[0].as_dict(), records[1].as_dict())
    if as_json:
        print_json({key: list(pair) for key, pair in pairs.items()})
    else:
        rows = [[key, str(left), str(right)] for key, (left, right) in pairs.items()]
        print_table(["key", records[0].run_id, records[1].run_id], rows)
