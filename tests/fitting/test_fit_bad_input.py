"""What a user may get wrong, and the line that tells them."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from fitting_case import entry, fitted

from moelaws import laws
from moelaws.cli import cli
from moelaws.fitting.fit import source_of
from moelaws.fitting.rows import split_rows
from moelaws.spec.errors import UserError, located
from moelaws.tables.foreign import read_any

LAW = laws.get("sparsity.loss")
NAN = float("nan")


def _fit(table, law=LAW, **fields):
    with located("runs.parquet"):
        return fitted(law, table, **{"bootstrap": 1} | fields)


def _groups(table, law=LAW, declared=(), **fields):
    with located("runs.csv"):
        return split_rows(law, table, entry(law, **fields), dict(declared))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("L", np.nan, r"row 4 \(run r3\): column L is nan; L must be a number above 0"),
        ("L", np.inf, "row 4 .* column L is inf"),
        ("L", -2.0, "row 4 .* column L is -2"),
        ("L", 1e300, "row 4 .* L is 1e.300; L must be a number above 0 and below 1e100"),
        ("S", 1.0, "row 4 .* column S is 1; S must be at least 0 and below 1"),
        ("N", 0.0, "row 4 .* column N is 0; N must be a number above 0"),
        ("D", -5.0, "row 4 .* column D is -5"),
        ("run_id", "r2", "rows 3 and 4 both have run_id r2"),
    ],
)
def test_a_value_that_a_row_cannot_have(simulated, column, value, message):
    table = simulated(sizes=4)
    table["run_id"] = [f"r{i}" for i in range(len(table))]
    table.loc[3, column] = value
    with pytest.raises(UserError, match=message):
        _fit(table)


def test_a_law_that_declares_no_starts_of_a_parameter(simulated):
    some = dataclasses.replace(LAW.protocol, grid={"a": (1.0,)})
    with pytest.raises(UserError, match=r"law sparsity.loss: the parameter b declares no starts"):
        _fit(simulated(sizes=4), dataclasses.replace(LAW, protocol=some))


def test_a_bad_row_that_is_not_used_is_no_mistake(simulated):
    table = simulated(sizes=4)
    table.loc[3, "L"] = np.nan
    (rows,) = _groups(table, rows="L > 0")
    assert rows.left_out == {"not in rows: L > 0": 1}
    table.loc[3, "status"] = "diverged"
    (rows,) = _groups(table)
    assert rows.left_out == {"status is diverged": 1}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mapping": {"L": "loss"}}, "runs.parquet: no column 'loss' for L of sparsity.loss"),
        (
            {"mapping": {"M": "N"}},
            "mapping: 'M' is not a variable of sparsity.loss; it has N, D, S, L .others may be",
        ),
        ({"mapping": {"N": "status"}}, "row 1: column status is 'completed'; it must be a number"),
        ({"rows": "S >> 0"}, "'S >> 0' is not COLUMN OP VALUE"),
        ({"rows": "width > 3"}, "no column 'width'"),
        ({"rows": "S > 2"}, r"no row is left to fit; left out: 72 \(not in rows: S > 2\)"),
        ({"split_by": "budget"}, "no column 'budget' for split_by"),
        ({"holdout": "S > 0.99"}, "holdout 'S > 0.99' selects none of the 72 rows"),
        ({"holdout": "S >= 0"}, "0 rows are left to fit the 10 parameters .* held out: 72"),
        ({"rows": "S < 0.1 and C < 1e20"}, "4 rows are left to fit the 10 parameters"),
        ({"split_by": "N"}, "1 rows at N = .* are left to fit the 10 parameters"),
        ({"rows": "S < 0.1"}, "12 rows cannot determine c, e, lambda and delta .* all have S = 0"),
        ({"protocol": {"steps": 3}}, "protocol: unknown key steps; .* delta, grid, objective"),
        ({"protocol": {"delta": "x"}}, "protocol: delta is 'x'; it must be a number"),
        ({"protocol": {"delta": 0}}, "protocol: delta is 0; it must be "),
        ({"protocol": {"delta": 1e-320}}, "delta is 1e-320; it must be at least 1e-12"),
        ({"protocol": {"delta": 1e308}}, "delta is 1e.308; it must be at most 1,000,000,000,000"),
        ({"mapping": {"N": "D"}}, "column 'D' is mapped to N and D of sparsity.loss; each needs"),
        ({"protocol": {"grid": {"z": [1]}}}, "protocol.grid.z is no parameter"),
        ({"protocol": {"grid": {"a": []}}}, "protocol.grid.a has no values"),
        ({"profile": ["z"]}, "profile: sparsity.loss has no parameter 'z'; it has a"),
    ],
)
def test_an_entry_that_does_not_fit_the_table(simulated, fields, message):
    with pytest.raises(UserError, match=message):
        _fit(simulated(sizes=4), **fields)


@pytest.mark.parametrize(
    ("change", "fields", "message"),
    [
        ({"N": 1.5}, {}, r"N is at most 1\.5 parameters; say its unit with --unit N=M or"),
        ({"D": 20.0}, {}, r"D is at most 20 tokens; .* --unit D=B .* right, say --unit D=1"),
        ({"S": 75.0}, {}, r"S is 75 at most and should not be above 1; .* --unit S=percent"),
        ({"L": 300.0}, {}, "L is 300 nats/token in the median row; map .* logarithm .* perplex"),
        ({"L": 1.0}, {}, "L is 1 in every row, as no losses are"),
        ({"L": [0.0, 1.0] * 36}, {}, "L is 0 or 1 in every row, as no losses are"),
        ({"L": True}, {}, "row 1: column L is .*True.*; it must be a number"),
        ({"N": True}, {}, "row 1: column N is .*True.*; it must be a number"),
        ({"N": "1,5"}, {}, "row 1: column N is '1,5'; it must be a number"),
        ({"N": "1_000"}, {}, "row 1: column N is '1_000'; it must be a number"),
        ({"N": "１０"}, {}, "row 1: column N is '１０'; it must be a number"),
        ({}, {"units": {"N": "percent"}}, "unit of N is 'percent'; allowed for parameters: K, M"),
        (
            {},
            {"units": {"C": "PF-days"}},
            "unit of 'C': the table has no column .* for N, D, S, L$",
        ),
        ({"N": -5.0}, {"units": {"N": "M"}}, "row 1: column N is -5.* N must be a number above 0"),
        ({}, {"weights": "L_se"}, "no column 'L_se' for weights; there are C, S, N"),
        ({"L_se": 0.0}, {"weights": "L_se"}, "row 1: column L_se is 0, as the standard error of L"),
        ({"L_se": None}, {"weights": "L_se"}, "row 1: column L_se is nan, as the standard error"),
        ({}, {"resample_by": "run"}, "no column 'run' for resample_by"),
        ({"run": None}, {"resample_by": "run"}, "row 1: column run is empty; resample_by needs"),
        ({"run": "a"}, {"resample_by": "run"}, "resample_by run: all 72 rows are one block"),
        (
            {"bpb": 0.01},
            {"declared": {"bpb": "bits/byte"}, "weights": "bpb"},
            "column bpb is in bits/byte, and L in nats/token",
        ),
        (
            {"ln_L_se": 0.01},
            {"declared": {"ln_L_se": "1"}, "weights": "ln_L_se"},
            "column ln_L_se is in 1, and L in nats/token",
        ),
        (
            {"D": NAN, "flops": NAN},
            {"mapping": {"C": "flops"}},
            r"the table's column flops, for the variable C \(training compute\), is empty in all",
        ),
        (
            {"E": NAN},
            {"law": laws.fittable("wang.loss")},
            r"the table's column E, for the variable E \(experts a layer; .*\), is empty in all r",
        ),
        (
            {"S": NAN, "E": 16, "k": 16.5},
            {},
            r"row 1: S = \(E - k\) / E is -0\.03125, as in 71 more rows; S must",
        ),
        (
            {"S": NAN, "E": 16, "k": 0},
            {},
            "row 1: column k is 0, as in 71 more rows; k must be a n",
        ),
        ({"S": NAN, "E": 0, "k": 1}, {}, "column E is 0.* E must be at least 1 and below 1e100"),
        (
            {"S": NAN, "E": 16, "k": NAN},
            {},
            r"no column 'S' for S .*derived from E and k; empty in all rows: S, k$",
        ),
    ],
)
def test_a_table_in_other_units_or_without_what_is_needed(simulated, change, fields, message):
    with pytest.raises(UserError, match=message):
        _groups(simulated(sizes=4).assign(**change), **fields)


def test_a_unit_says_that_unlikely_numbers_are_meant(simulated):
    table = simulated(sizes=4)
    small = table.assign(N=table["N"] / 1e9)
    with pytest.raises(UserError, match="if the column is right, say --unit N=1"):
        _groups(small)
    (meant,) = _groups(small, units={"N": 1})
    (billions,) = _groups(small, units={"N": "B"})
    assert meant.columns["N"].max() < 1e3
    assert np.sort(billions.columns["N"]) == pytest.approx(np.sort(table["N"]))
    assert billions.notes == ("N = 1e+09 x column N (unit B)",)


@pytest.mark.parametrize(
    ("content", "law", "message"),
    [
        ("N,D,L\n1e9,x,2.5\n", "chinchilla", "row 1: column D is 'x'; it must be a number"),
        ("N;D;L\n1;2;3\n", "chinchilla", "';' seems to separate them"),
        ("N,D,L\n1,2,3\n", "chinchilla --map Q=N", "mapping: 'Q' is not a variable"),
        ("N,D,L\n1,2,3\n", "sectional.cost", "is a formula: it has nothing to fit"),
    ],
)
def test_the_command_says_it_in_one_line_and_writes_nothing(content, law, message, tmp_path):
    table = tmp_path / "runs.csv"
    table.write_text(content)
    arguments = ["fit", str(table), "--law", *law.split(), "--out", str(tmp_path / "fit.json")]
    with pytest.raises(UserError) as error:
        CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["runs.csv"]


def test_a_strangers_status_and_source_are_ordinary_columns(simulated, tmp_path):
    """FINISHED and a source of data mean nothing here; our words do, in any table."""
    theirs = simulated(sizes=4).assign(source="c4", status="FINISHED")
    theirs.loc[0, "status"] = "CRASHED"
    theirs.to_csv(tmp_path / "runs.csv", index=False)
    frame, units = read_any(tmp_path / "runs.csv")
    (rows,) = _groups(frame, declared=units)
    assert (len(rows.response), rows.left_out) == (72, {})
    (finished,) = _groups(frame, declared=units, rows="status == FINISHED")
    assert len(finished.response) == 71
    assert source_of(frame) == "imported"
    ours = frame.assign(source="simulated", status="diverged")
    assert source_of(ours) == "simulated"
    ours.loc[0, "status"] = "out_of_memory"
    told = "no row is left to fit; left out: 71 .status is diverged., 1 .status is out_of_memory."
    for holdout in ("", "S > 0.9"):
        with pytest.raises(UserError, match=told):
            _groups(ours, holdout=holdout)


def test_a_parquet_table_whose_units_contradict_the_law(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = pd.DataFrame({"N": [1e9] * 6, "D": [2e10] * 6, "bpb": [0.8] * 6})
    units = {"N": "parameters", "D": "tokens", "bpb": "bits/byte"}
    schema = pa.schema([pa.field(n, pa.float64(), metadata={"unit": u}) for n, u in units.items()])
    pq.write_table(pa.Table.from_pandas(frame, schema=schema), tmp_path / "runs.parquet")
    arguments = ["fit", str(tmp_path / "runs.parquet"), "--law", "chinchilla", "--map", "L=bpb"]
    with pytest.raises(UserError, match="column bpb is in bits/byte, and L in nats/token; map a"):
        CliRunner().invoke(cli, arguments, catch_exceptions=False)
