"""Tables of runs as a folder that other programs load: with a card, and Croissant 1.1.

``datasets.load_dataset(folder, name)`` reads one table, and ``mlcroissant`` reads all of them.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from moelaws.files.atomic import read_json, replacing_folder
from moelaws.files.parquet import read_parquet, read_schema
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.spec.words import counted
from moelaws.tables.parquet import column_metadata, is_study

COMMON = "common"  # the table of all studies' runs
_NAMES: dict[str, str] = table_beside(__file__)  # name in it -> column of a study's table
_FIXED, _CARD = (Path(__file__).with_suffix(suffix) for suffix in (".json", ".md"))
_FACETS = {
    "tags": ["scaling-laws", "mixture-of-experts", "tabular"],
    "task_categories": ["tabular-regression"],
}


def export(
    tables: Sequence[Path], folder: Path, title: str, author: str, license: str, url: str
) -> dict[str, int]:
    """Writes the Parquet ``tables`` to a new ``folder``, and ``common`` of the studies among them.

    ``license`` is an identifier as the hub has them, such as cc-by-4.0, and ``url`` where the data
    set will be found. Returns the rows of each table. Raises UserError on a folder that is not
    empty, and on names that two tables share or that a configuration cannot have.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"--to: {folder} is there already; name a new folder")
    files = {path.stem: path for path in tables}
    odd = [name for name in (*files, COMMON) if not re.fullmatch(r"[\w-]+", name, re.ASCII)]
    if odd or COMMON in files or len(files) < len(tables):
        raise UserError(
            "a table is known by the name of its file: letters, digits, _ and -, each once, and "
            f"not {COMMON!r}; rename {', '.join(odd) or 'one'}"
        )
    about = _about(tables)
    with replacing_folder(folder) as work:
        for name, path in files.items():
            place = work / _place(name)
            place.parent.mkdir(parents=True)
            shutil.copyfile(path, place)
        if studies := [path for path in tables if is_study(path)]:
            place = work / _place(COMMON)
            place.parent.mkdir(parents=True)
            pq.write_table(_common(studies), place)
            files[COMMON] = place
        configs = [{"config_name": name, "data_files": _place(name)} for name in files]
        front = {"pretty_name": title, "license": license, **_FACETS, "configs": configs}
        text = _CARD.read_text(encoding="utf-8").format(
            front=yaml.safe_dump(front, sort_keys=False, allow_unicode=True),
            title=title,
            about=about,
        )
        columns = [line for name in files for line in _columns(name, work / _place(name))]
        (work / "README.md").write_text("\n".join([text, *columns, ""]), encoding="utf-8")
        data = {
            **read_json(_FIXED),
            "name": title,
            "description": about,
            "license": license,
            "url": url,
            "creator": {"@type": "sc:Organization", "name": author},
            "datePublished": datetime.now(UTC).date().isoformat(),
            "distribution": [_file(name, work) for name in files],
            "recordSet": [_records(name, work / _place(name)) for name in files],
        }
        described = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        (work / "croissant.json").write_text(described, encoding="utf-8")
        return {name: read_parquet(work / _place(name)).num_rows for name in files}


def _place(name: str) -> str:
    return f"data/{name}/train-00000-of-00001.parquet"  # as the hub names the files of a split


def _about(tables: Sequence[Path]) -> str:
    """Returns what the tables are, and where their losses come from, in sentences."""
    parts = []
    for path in tables:
        table = read_parquet(path)
        said = f"The table {path.stem} has {counted(table.num_rows, 'row')}"
        if "source" in table.column_names:
            sources = sorted({*table["source"].unique().to_pylist()} - {None})
            said += f", whose losses are {' and '.join(sources)}"
        parts.append(f"{said}.")
    return " ".join(["Runs of language models, most of them mixtures of experts.", *parts])


def _common(studies: Sequence[Path]) -> pa.Table:
    """Returns the runs of all studies; a column that a study does not have is null for it."""
    parts = []
    for path in studies:
        table = read_parquet(path).replace_schema_metadata()
        parts.append(table.select([name for name in _NAMES.values() if name in table.column_names]))
    whole = pa.concat_tables(parts, promote_options="default")
    known = {new: old for new, old in _NAMES.items() if old in whole.column_names}
    fields = []
    for new, old in known.items():
        field = whole.schema.field(old)
        said = dict(field.metadata or {})
        if new != old and b"description" in said:
            said[b"description"] += f"; `{old}` in the tables of studies".encode()
        fields.append(pa.field(new, field.type, metadata=said))
    return pa.Table.from_arrays([whole[old] for old in known.values()], schema=pa.schema(fields))


def _fields(path: Path) -> Iterator[tuple[pa.Field, str, str]]:
    """Yields each column of a table with its unit and its description, which may be empty."""
    known = column_metadata(path)
    for field in read_schema(path):
        yield field, *known.get(field.name, ("", ""))


def _columns(name: str, path: Path) -> Iterator[str]:
    """Yields the lines of a table's columns, for the card."""
    yield f"## {name}\n\n| column | type | unit | meaning |\n|-|-|-|-|"
    for field, unit, meaning in _fields(path):
        yield f"| `{field.name}` | {field.type} | {unit} | {meaning.replace('|', '/')} |"
    yield ""


def _file(name: str, work: Path) -> dict[str, str]:
    content = (work / _place(name)).read_bytes()
    return {
        "@type": "cr:FileObject",
        "@id": f"{name}.parquet",
        "name": f"{name}.parquet",
        "contentUrl": _place(name),
        "contentSize": f"{len(content)} B",
        "encodingFormat": "application/x-parquet",
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _records(name: str, path: Path) -> Mapping[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{field.name}",
                "name": field.name,
                "description": f"{meaning} ({unit})" if unit not in ("", "1") else meaning,
                "dataType": _type(field.type),
                "source": {
                    "fileObject": {"@id": f"{name}.parquet"},
                    "extract": {"column": field.name},
                },
            }
            for field, unit, meaning in _fields(path)
        ],
    }


def _type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    return "sc:Float" if pa.types.is_floating(kind) else "sc:Text"
