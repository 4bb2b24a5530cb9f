"""``moelaws aggregate``: a study's table from its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import click

from moelaws.cli.output import json_option, out_option, print_json
from moelaws.cli.project import project_options
from moelaws.spec.project import Project


@click.command(name="aggregate")
@click.argument("study")
@project_options
@out_option("The Parquet file; results/<tier>/tables/<study>.parquet by default.")
@json_option
def command(study: str, project: Project, out: Path | None, as_json: bool) -> None:
    """Collect the summaries of STUDY's runs in one Parquet table.

    Of a study of imported runs, check the table that it ships and take it.
    """
    from moelaws.records.code import digest
    from moelaws.records.layout import Results
    from moelaws.spec.project import load_study
    from moelaws.workflow.code import of_table

    results = Results()
    spec = load_study(study)
    path = out or results.tier(project.tier).table(spec.study)
    code = digest(of_table(spec))
    if spec.imported:
        from moelaws.records.seal import made_of
        from moelaws.tables.imported import take

        _print(path, {"imported": take(spec, path, made_of(spec.imported_files, code))}, as_json)
        return
    from moelaws.grids.sweep import expand_study
    from moelaws.tables.aggregate import aggregate, origin
    from moelaws.tables.parquet import write_table
    from moelaws.tables.rates import rates_at_the_edge
    from moelaws.tables.schema import TRAINED_COLUMNS

    runs = expand_study(spec, project).runs
    frame = aggregate(spec.study, project.tier, runs, results, _warn)
    notes = {"study": spec.study, "tier": project.tier}
    write_table(frame, TRAINED_COLUMNS, path, notes, {"code": code, **origin(runs, results)})
    for line in rates_at_the_edge(frame):
        _warn(line)
    _print(path, Counter(frame["status"]), as_json)


def _warn(line: str) -> None:
    click.echo(f"moelaws: warning: {line}", err=True)


def _print(path: Path, counts: Mapping[str, int], as_json: bool) -> None:
    if as_json:
        print_json({"table": str(path), "rows": sum(counts.values()), "status": counts})
    else:
        shown = ", ".join(f"{n} {status}" for status, n in counts.items())
        click.echo(f"{path}: {sum(counts.values())} runs ({shown})")
