"""What an entry reads: what it declares alone; measured speeds are on record once they are read."""

import pandas as pd
import pytest

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.spec.errors import UserError
from moelaws.spec.readers import Derived
from moelaws.tables.column import Column
from moelaws.tables.parquet import write_table

CODE = "derived.times:derive"


@pytest.fixture
def inputs(tmp_path):
    path = tmp_path / "speed/toy.parquet"
    columns = (Column("run_id", "string", "run"), Column("step_seconds", "float", "time", "s"))
    write_table(pd.DataFrame({"run_id": ["a"], "step_seconds": [0.5]}), columns, path)
    return Inputs(frame=None, speed_file=path)


def test_speeds_are_on_record_once_they_are_read(inputs):
    timed = inputs.declared_by(Derived(name="times", code=CODE, speed=True))
    assert timed.files == []
    assert list(timed.speed()["step_seconds"]) == [0.5]
    assert timed.files == [inputs.speed_file]
    assert list(timed.made_of()["files"]) == [inputs.speed_file.as_posix()]


@pytest.mark.parametrize(
    ("read", "write"),
    [
        (lambda inputs: inputs.fit("loss"), r"fits: \[curve, loss\]"),
        (lambda inputs: inputs.draws("loss"), r"fits: \[curve, loss\]"),
        (lambda inputs: inputs.derived("points"), r"derived: \[points\]"),
        (lambda inputs: inputs.shipped("data/a.csv"), r"data: \[data/a.csv\]"),
    ],
)
def test_what_code_reads_must_be_declared(tmp_path, read, write):
    given = {name: tmp_path / name for name in ("curve", "loss", "points", "data/a.csv")}
    inputs = FittedInputs(frame=None, fits=given, derived_tables=given, data=given)
    own = inputs.declared_by(Derived(name="times", code=CODE, fits=("curve",)))
    with pytest.raises(UserError, match=f"does not declare or which was not given: write {write}"):
        read(own)
