"""``moelaws import``: somebody else's table as a study's table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from moelaws.cli.output import check_out, json_option, out_option, print_json, print_table
from moelaws.spec.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


@click.command(name="import")
@click.argument("table", type=click.Path(path_type=Path))
@click.option(
    "--mapping",
    "mapping_file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.yaml",
    help="Which column of TABLE is which of a study's table; config/imports/ has examples.",
)
@out_option("FILE.parquet; the study's name in the current folder by default.")
@json_option
def command(table: Path, mapping_file: Path, out: Path | None, as_json: bool) -> None:
    """Make a study's table of TABLE, the runs of somebody else (Parquet, CSV, TSV, JSON lines).

    The mapping file names the source, its licence and its digest. What it does not map is missing.
    All is checked as strictly as a table of runs trained here.
    """
    check_out(out, ".parquet")
    from moelaws.tables.imported import import_table

    imported = import_table(table, mapping_file)
    path = out or Path(f"{imported.study}.parquet")
    if path.exists() and path.samefile(table):
        raise UserError(f"{path} is the source itself; name another file with --out")
    imported.write(path)
    frame = imported.frame
    known = [c for c in imported.columns if frame[c.name].notna().any()]
    if as_json:
        data = {"table": str(path), "rows": len(frame), "columns": [c.name for c in known]}
        print_json(data | {"origin": imported.about})
        return
    rows = [(c.name, c.unit, *_range(frame[c.name])) for c in known]
    print_table(("column", "unit", "values", "lowest", "highest"), rows)
    unknown = [c.name for c in imported.columns if c not in known]
    click.echo(f"{path}: {len(frame)} runs; unknown of them: {', '.join(unknown) or 'nothing'}")
    click.echo(f"{imported.about['licence']}: {imported.about['attribution']}")


def _range(cells: pd.Series) -> tuple[object, ...]:
    import pandas as pd

    known = cells.dropna()
    if not pd.api.types.is_numeric_dtype(known):
        words = sorted(set(known.astype(str)))
        return known.nunique(), words[0], words[-1]
    return known.nunique(), float(known.min()), float(known.max())
