"""Records of runs, copied and changed for the tests of exports."""

import shutil

import pyarrow as pa

from moelaws.files.atomic import read_json, write_json
from moelaws.files.parquet import read_parquet, write_parquet


def id_of(results, kind):
    """The trained run whose layers are of this kind."""
    runs = {path: read_json(path / "config.json") for path in results.runs.glob("?" * 16)}
    return next(p.name for p, c in runs.items() if c["model"]["ffn"]["kind"] == kind)


def copy_run(results, run, name, **summary):
    """The record of a run once more, under another name and with other results."""
    shutil.copytree(results.run(run), results.run(name))
    old = read_json(results.summary(name))
    write_json(results.summary(name), {**old, "run_id": name, **summary})


def replace_column(path, name, values):
    table = read_parquet(path)
    place = table.column_names.index(name)
    write_parquet(path, table.set_column(place, table.schema.field(name), pa.array(values)))
