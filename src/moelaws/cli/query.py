"""``moelaws query``: SQL over the tables and the runs on record."""

import csv
import json
import sys

import click

from moelaws.cli.answers import JsonCommand, print_json, print_table, warn
from moelaws.cli.common import option
from moelaws.cli.project import project_options
from moelaws.files.layout import Results
from moelaws.spec.project import Project


@click.command(name="query", cls=JsonCommand)
@click.argument("sql")
@project_options
@option("--csv as_csv", "Print CSV, with numbers in full.", is_flag=True)
def command(sql: str, project: Project, as_csv: bool, as_json: bool) -> None:
    """Answer a SELECT over the tier's tables, such as
    "SELECT S, min(L) FROM sparsity GROUP BY S".

    Each study's table goes by the study's name; `runs` is the record of every run. The SQL is one
    SELECT, DESCRIBE, SUMMARIZE or EXPLAIN in DuckDB's dialect. It reads these tables and nothing
    else: no file, no network, no extension, no setting. It changes nothing.
    """
    from moelaws.tables.query import query

    columns, rows = query(sql, Results(), project.tier, warn)
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif as_csv:  # nothing for NULL, and JSON for lists and structs
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow([json.dumps(x) if isinstance(x, list | dict) else x for x in row])
    else:
        print_table(columns, rows)
