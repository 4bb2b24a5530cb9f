"""``moelaws query``: SQL over the tables and the runs on record."""

from __future__ import annotations

import click

from moelaws.cli.output import json_option, print_json, print_table
from moelaws.cli.project import project_options
from moelaws.spec.project import Project


@click.command(name="query")
@click.argument("sql")
@project_options
@json_option
def command(sql: str, project: Project, as_json: bool) -> None:
    """Answer a SELECT over the tier's tables, such as
    "SELECT S, min(L) FROM sparsity GROUP BY S".

    Each study's table goes by the study's name; `runs` is the record of every run.
    """
    from moelaws.records.layout import Results
    from moelaws.tables.query import query

    frame = query(sql, Results(), project.tier)
    if as_json:
        print_json(frame.to_dict(orient="records"))
    else:
        print_table(list(frame.columns), frame.astype(object).to_numpy().tolist())
