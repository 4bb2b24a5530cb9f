"""``moelaws import``: a study's table from somebody else's runs; ``query``: SQL over tables."""

import csv
import json
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.common import (
    INPUT,
    Answer,
    json_command,
    option,
    out_option,
    print_answer,
    table_text,
    warn,
)
from moelaws.cli.project import project_options
from moelaws.files.layout import Results
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project
from moelaws.spec.words import counted

if TYPE_CHECKING:
    import pandas as pd


@json_command
@click.argument("table", required=False)
@option(
    "--mapping mapping_file",
    "Which column of TABLE is which of a study's table; config/imports/ has examples.",
    INPUT,
    metavar="FILE.yaml",
)
@option(
    "--from given",
    "A file, a folder or a mirror's address with the files of a table of the register.",
    default="",
    metavar="PATH|URL",
)
@option("--list is_list", "Show the register of public runs.", is_flag=True)
@out_option(
    "FILE.parquet; by default results/imported/NAME.parquet for a name of the register, and else "
    "the study's name in the current folder.",
    ".parquet",
)
def import_(
    table: str | None,
    mapping_file: Path | None,
    given: str,
    is_list: bool,
    out: Path | None,
) -> Answer:
    """Make a study's table of somebody else's runs: Parquet, CSV, TSV, JSON or Markdown.

    TABLE is a name of the register, whose files are fetched, or a file with its --mapping (a folder
    where the mapping has several files). The mapping names the source, its licence and its digest.
    What it does not map is missing. All is checked as strictly as a table of runs trained here.
    """
    from moelaws.tables.imported import import_table
    from moelaws.tables.mapping import read_mapping
    from moelaws.tables.register import mapping_of, source_of

    if is_list:
        return _register()
    if table is None:
        raise UserError("name a file and its --mapping, or public runs: `moelaws import --list`")
    place: AbstractContextManager[Path] = nullcontext(Path(table))
    if mapping_file is None:
        mapping_file, out = mapping_of(table), out or Results().imported(table)
        place = source_of(table, read_mapping(mapping_file), given)
    elif given:
        raise UserError("--from goes with a name of the register, not with --mapping")
    with place as source:
        imported = import_table(source, mapping_file)
    path = out or Path(f"{imported.study}.parquet")
    if path.exists() and path.samefile(source):
        raise UserError(f"{path} is the source itself; name another file with --out")
    imported.write(path)
    frame = imported.frame
    known = [c for c in imported.columns if frame[c.name].notna().any()]
    data = {
        "table": path,
        "rows": len(frame),
        "columns": [c.name for c in known],
        "origin": imported.about,
    }
    rows = [(c.name, c.unit, *_range(frame[c.name].dropna(), c.type)) for c in known]
    unknown = ", ".join(c.name for c in imported.columns if c not in known) or "nothing"
    lines = [
        table_text(("column", "unit", "values", "lowest", "highest"), rows),
        f"{path}: {counted(len(frame), 'run')}; unknown of them: {unknown}",
        f"{imported.about['licence']}: {imported.about['attribution']}",
    ]
    for key in ("losses", "assumed"):
        if text := imported.about.get(key):
            lines.append(f"{key}: {text}")
    return data, "\n".join(lines)


def _register() -> Answer:
    from moelaws.tables.register import register

    of_origin, of_file = {"licence", "attribution"}, {"file", "url", "sha256"}
    rows = [
        {
            "name": name,
            **mapping.model_dump()["public"],
            **mapping.origin.model_dump(include=of_origin),
            "files": [file.model_dump(include=of_file) for file in mapping.origin.files],
            "here": Results().imported(name).is_file(),
        }
        for name, mapping in register().items()
    ]
    cells = [
        (r["name"], r["runs"], *r["C"], r["licence"], "yes" if r["here"] else "no", r["what"])
        for r in rows
    ]
    lines = [
        table_text(("name", "runs", "C from", "to", "licence", "here", "what"), cells),
        "`moelaws import NAME` fetches a table's files, which are no part of this repository: they "
        "are fetched by you, under the licence above.",
    ]
    return {"register": rows}, "\n".join(lines)


def _range(known: "pd.Series", kind: str) -> tuple[Any, ...]:
    values = known.astype(str if kind == "string" else float)
    return values.nunique(), values.min(), values.max()


@json_command
@click.argument("sql")
@project_options
@option("--csv as_csv", "Print CSV, with numbers in full.", is_flag=True)
def query(sql: str, project: Project, as_csv: bool, as_json: bool) -> None:
    """Answer a SELECT over the tier's tables, such as
    "SELECT S, min(L) FROM sparsity GROUP BY S".

    Each study's table goes by the study's name; `runs` is the record of every run. The SQL is one
    SELECT, DESCRIBE, SUMMARIZE or EXPLAIN in DuckDB's dialect. It reads these tables and nothing
    else: no file, no network, no extension, no setting. It changes nothing.
    """
    from moelaws.tables.query import query as answer_of

    columns, rows = answer_of(sql, Results(), project.tier, warn)
    if as_csv and not as_json:  # nothing for NULL, and JSON for lists and structs
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow([json.dumps(x) if isinstance(x, list | dict) else x for x in row])
    else:
        data = [dict(zip(columns, row, strict=True)) for row in rows]
        print_answer(as_json, data, table_text(columns, rows))
