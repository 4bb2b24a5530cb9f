"""``moelaws aggregate`` and ``import``: a study's table from its own runs, or somebody else's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.answers import JsonCommand, print_answer, table_text, warn
from moelaws.cli.common import FILE, option, out_option
from moelaws.cli.project import project_options
from moelaws.files.layout import Results
from moelaws.files.seal import made_of
from moelaws.grids.sweep import expand_study
from moelaws.records.code import digest
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, load_study
from moelaws.spec.words import counted
from moelaws.workflow.code import of_table

if TYPE_CHECKING:
    import pandas as pd


@click.command(name="aggregate", cls=JsonCommand)
@click.argument("study")
@project_options
@out_option("The Parquet file; results/<tier>/tables/<study>.parquet by default.")
def aggregate(study: str, project: Project, out: Path | None, as_json: bool) -> None:
    """Collect the summaries of STUDY's runs in one Parquet table.

    Of a study of imported runs, check the table that it ships and take it.
    """
    results, spec = Results(), load_study(study)
    path = out or results.tier(project.tier).table(spec.study)
    code = digest(of_table(spec))
    if spec.imported:
        from moelaws.tables.imported import take

        counts = Counter(imported=take(spec, path, made_of(spec.imported_files, code)))
    else:
        from moelaws.tables.aggregate import aggregate as collect
        from moelaws.tables.aggregate import origin, rates_at_the_edge
        from moelaws.tables.parquet import write_table
        from moelaws.tables.schema import TRAINED_COLUMNS

        runs = expand_study(spec, project).runs
        frame = collect(spec.study, project.tier, runs, results, warn)
        notes = {"study": spec.study, "tier": project.tier}
        write_table(frame, TRAINED_COLUMNS, path, notes, {"code": code, **origin(runs, results)})
        warn(*rates_at_the_edge(frame))
        counts = Counter(frame["status"])
    shown = ", ".join(f"{n} {status}" for status, n in counts.items())
    data = {"table": str(path), "rows": counts.total(), "status": counts}
    print_answer(as_json, data, f"{path}: {counted(counts.total(), 'run')} ({shown})")


@click.command(name="import", cls=JsonCommand)
@click.argument("table", type=FILE)
@option(
    "--mapping mapping_file",
    "Which column of TABLE is which of a study's table; config/imports/ has examples.",
    FILE,
    required=True,
    metavar="FILE.yaml",
)
@out_option("FILE.parquet; the study's name in the current folder by default.", ".parquet")
def import_(table: Path, mapping_file: Path, out: Path | None, as_json: bool) -> None:
    """Make a study's table of TABLE, the runs of somebody else (Parquet, CSV, TSV, JSON lines).

    The mapping file names the source, its licence and its digest. What it does not map is missing.
    All is checked as strictly as a table of runs trained here.
    """
    from moelaws.tables.imported import import_table

    imported = import_table(table, mapping_file)
    path = out or Path(f"{imported.study}.parquet")
    if path.exists() and path.samefile(table):
        raise UserError(f"{path} is the source itself; name another file with --out")
    imported.write(path)
    frame = imported.frame
    known = [c for c in imported.columns if frame[c.name].notna().any()]
    data = {"table": str(path), "rows": len(frame), "columns": [c.name for c in known]}
    rows = [(c.name, c.unit, *_range(frame[c.name].dropna(), c.type)) for c in known]
    unknown = ", ".join(c.name for c in imported.columns if c not in known) or "nothing"
    lines = [
        table_text(("column", "unit", "values", "lowest", "highest"), rows),
        f"{path}: {counted(len(frame), 'run')}; unknown of them: {unknown}",
        f"{imported.about['licence']}: {imported.about['attribution']}",
    ]
    print_answer(as_json, data | {"origin": imported.about}, "\n".join(lines))


def _range(known: pd.Series, kind: str) -> tuple[Any, ...]:
    if kind == "string":
        words = sorted(set(known.astype(str)))
        return known.nunique(), words[0], words[-1]
    return known.nunique(), float(known.min()), float(known.max())
