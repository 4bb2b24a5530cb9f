"""``moelaws query``: SQL over the tables and the runs on record."""

import csv
import json
import sys
from pathlib import Path
from typing import IO, Any

import click

from moelaws.cli.answers import JsonCommand, print_json, print_table
from moelaws.cli.common import FILE, check_out, option
from moelaws.cli.project import project_options
from moelaws.files.atomic import replacing
from moelaws.files.layout import Results
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project

STDOUT = Path("-")


@click.command(name="query", cls=JsonCommand)
@click.argument("sql")
@project_options
@option(
    "--csv out",
    "Write the answer to FILE, whose name ends in .csv; - is standard output.",
    FILE,
    metavar="FILE",
)
@option(
    "--time-limit seconds",
    "The most time that the answer may take, once the tables are read.",
    click.IntRange(1, 86_400),
    60,
    metavar="SECONDS",
)
@option(
    "--memory-limit gigabytes",
    "The most memory that the answer may take.",
    click.IntRange(1, 10_000),
    2,
    metavar="GB",
)
def command(
    sql: str,
    project: Project,
    out: Path | None,
    seconds: int,
    gigabytes: int,
    as_json: bool,
) -> None:
    """Answer a SELECT over the tier's tables, such as
    "SELECT S, min(L) FROM sparsity GROUP BY S".

    Each study's table goes by the study's name; `runs` is the record of every run. The SQL is one
    SELECT, DESCRIBE, SUMMARIZE or EXPLAIN in DuckDB's dialect. It reads these tables and nothing
    else: no file, no network, no extension, no setting. It changes nothing; --csv writes the
    answer to a file of yours, outside results/.
    """
    from moelaws.tables.query import query

    results = Results()
    if out is not None:
        _check_csv(out, as_json, results)
    columns, rows = query(sql, results, project.tier, seconds, gigabytes)
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif out is None:
        print_table(columns, rows)
    elif out == STDOUT:
        _write_csv(sys.stdout, columns, rows)
    else:
        with replacing(out) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            _write_csv(file, columns, rows)
        click.echo(f"{out}: {len(rows)} rows")


def _check_csv(out: Path, as_json: bool, results: Results) -> None:
    if as_json:
        raise UserError("--csv and --json are both given; give one of them")
    if out == STDOUT:
        return
    check_out(out, ".csv", option="--csv")
    if out.parent.resolve().is_relative_to(results.root.resolve()):
        raise UserError(
            f"--csv is {str(out)!r}, in {results.root}/, where the workflow keeps what it makes; "
            "give a file elsewhere"
        )


def _write_csv(file: IO[str], columns: list[str], rows: list[list[Any]]) -> None:
    """Writes numbers in full; nothing for NULL, and JSON for lists and structs."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(
        [json.dumps(cell) if isinstance(cell, list | dict) else cell for cell in row]
        for row in rows
    )
