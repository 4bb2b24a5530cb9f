"""Measured speeds as an input: read where the entry declares them, and on record then."""

import pandas as pd
import pytest

from moelaws.analysis.inputs import Inputs
from moelaws.spec.errors import UserError
from moelaws.spec.study import Derived
from moelaws.tables.column import Column
from moelaws.tables.parquet import write_table

CODE = "derived.times:derive"


@pytest.fixture
def inputs(tmp_path):
    path = tmp_path / "speed/toy.parquet"
    columns = (Column("run_id", "string", "1", "run"), Column("step_seconds", "float", "s", "time"))
    write_table(pd.DataFrame({"run_id": ["a"], "step_seconds": [0.5]}), columns, path)
    return Inputs(frame=None, speed_file=path)


def test_speeds_are_on_record_once_they_are_read(inputs):
    timed = inputs.declared_by(Derived(name="times", code=CODE, speed=True))
    assert timed.files == []
    assert list(timed.speed()["step_seconds"]) == [0.5]
    assert timed.files == [inputs.speed_file]
    assert list(timed.made_of()["files"]) == [inputs.speed_file.as_posix()]


def test_speeds_must_be_declared(inputs):
    other = inputs.declared_by(Derived(name="times", code=CODE))
    with pytest.raises(UserError, match="does not declare: write speed: true"):
        other.speed()


def test_speeds_must_be_there(inputs):
    inputs.speed_file.unlink()
    with pytest.raises(UserError, match="no such table; run the workflow first"):
        inputs.speed()
