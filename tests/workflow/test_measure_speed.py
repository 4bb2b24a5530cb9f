"""`speed: true`: a study's configurations are timed side by side, once, and a table reads that."""

import pandas as pd
import pytest
import yaml

from moelaws.files.parquet import read_origin
from own_study import write_study
from sweep_copy import Copy

pytestmark = pytest.mark.slow

SPEED = "results/demo/speed/dense.parquet"
TIMES = "results/demo/derived/dense/times.parquet"
CODE = """
from moelaws.analysis.derive import table
from moelaws.tables.column import Column


@table(
    Column("d_model", "int", "1", "width"),
    Column("step_seconds", "float", "s", "time of a step"),
)
def derive(inputs):
    return inputs.table.merge(inputs.speed(), on="run_id")
"""


def test_a_row_for_each_architecture_and_a_table_made_of_them(tmp_path):
    timed = Copy.of_repository(tmp_path)
    write_study(tmp_path / "ours", "package", "derived")
    (tmp_path / "ours/dense/derived/times.py").write_text(CODE)
    path = tmp_path / "ours/study.yaml"
    study = yaml.safe_load(path.read_text())
    axes = {"steps": [5, 10], "d_model": [8, 16], "d_ffn": 16}
    study["grids"]["demo"]["sweeps"] = [{"axes": axes}]
    study["derived"] = [{"name": "times", "code": "derived.times:derive", "speed": True}]
    path.write_text(yaml.safe_dump(study))
    timed.edit("config/config.yaml", r"studies: .*", "studies: [ours/study.yaml]")
    timed.snakemake(TIMES)
    assert len(timed.summaries()) == 4
    speeds, times = (pd.read_parquet(timed.root / name) for name in (SPEED, TIMES))
    assert list(times["d_model"]) == [8, 16]
    assert sorted(times["step_seconds"]) == sorted(speeds["step_seconds"])
    assert set(speeds["threads"]) == {1}  # as a training has
    assert SPEED in read_origin(timed.root / TIMES)["files"]
    assert timed.planned(TIMES) == {}
