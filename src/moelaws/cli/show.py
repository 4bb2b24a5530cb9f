"""``moelaws show``: one run's record."""

from __future__ import annotations

import click

from moelaws.cli.output import json_option, print_json, print_table


@click.command(name="show")
@click.argument("run")
@json_option
def command(run: str, as_json: bool) -> None:
    """Show everything on record of RUN (an id or its beginning)."""
    from moelaws.records.layout import Results
    from moelaws.records.runs import find_record, flatten

    data = find_record(Results(), run).as_dict()
    if as_json:
        print_json(data)
    else:
        print_table(["key", "value"], [[key, str(value)] for key, value in flatten(data).items()])
