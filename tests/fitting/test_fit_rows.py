"""From a table to arrays, and what a user may get wrong on the way."""

import numpy as np
import pandas as pd
import pytest
from fitting_case import entry, fitted

from moelaws import laws
from moelaws.fitting.fit import source_of
from moelaws.fitting.rows import digest, selected_rows, split_rows, used_columns
from moelaws.spec.errors import UserError
from moelaws.tables.foreign import read_any

LAW = laws.fittable("sparsity.loss")


def rows_of(table, of=LAW, declared=None, **fields):
    (rows,) = split_rows(of, table, entry(of, **fields), declared or {})
    return rows


def test_a_foreign_table_gives_what_ours_does(simulated):
    ours = simulated(sizes=4)
    E = 1e6  # whole numbers of experts that give these sparsities
    foreign = pd.DataFrame(
        {
            "size (M)": ours["N"] / 1e6,
            "PF-days": ours["C"] / 8.64e19,
            "E": E,
            "k": ((1 - ours["S"]) * E).round(),
            "bits": ours["L"] / np.log(2),
        }
    )
    mapping = {"N": "size (M)", "C": "PF-days", "L": "bits"}
    rows = rows_of(foreign, mapping=mapping, units=mapping | {"N": "M"})
    expected = rows_of(ours)
    # Rounding may change the order of rows that are alike in all but the loss.
    for name in ("N", "D", "S"):
        assert np.sort(rows.columns[name]) == pytest.approx(np.sort(expected.columns[name]))
    assert np.sort(rows.response) == pytest.approx(np.sort(expected.response))
    assert rows.notes == (
        "N = 1e+06 x column size (M) (unit M)",
        "L = 0.693147 x column bits (unit bits)",
        "C = 8.64e+19 x column PF-days (unit PF-days)",
        "S = (E - k) / E",
        "N_active = (1 - S) N",
        "D = C / (6 N_active)",
    )
    assert expected.notes == ()


def test_rows_that_stand_twice_are_warned_of_and_counted(simulated):
    table = simulated(sizes=4)
    tripled = pd.concat([table, table.iloc[:5], table.iloc[:5]])
    seeds = tripled.assign(seed=range(len(tripled)))  # runs that differ in one column are no copies
    some = {"rows": f"N > {table['N'][1]}"}
    for of, fields, told in (
        (tripled, {}, ["10 rows stand twice"]),
        (tripled, some, ["4 rows stand twice"]),
        (table, {}, []),
        (seeds, {}, []),
    ):
        twice = [text for text in rows_of(of, **fields).warnings if "twice" in text]
        assert [text.partition(":")[0] for text in twice] == told


@pytest.mark.parametrize("column", ["status", "State"])
def test_what_trackers_say_of_runs_that_did_not_end_is_told(simulated, column):
    table = simulated(sizes=4).drop(columns=["status", "C"]).assign(**{column: "finished"})
    assert not rows_of(table).warnings
    table.loc[[3, 5, 8], column] = ["FAILED", "RUNNING", "FAILED"]
    (warning,) = rows_of(table).warnings
    assert warning.startswith(f"{column} of rows that take part: 2 FAILED, 1 RUNNING; ")
    chosen = rows_of(table, rows=warning.split("'")[1])
    assert (len(chosen.response), chosen.warnings) == (69, ())


def test_an_empty_column_keeps_no_variable_from_being_derived(simulated):
    """Imported tables have every column of a study's table, most of them empty."""
    table = simulated(sizes=4)
    derived = table.drop(columns="D")
    empty = derived.assign(D=np.nan, E=None)
    rows = rows_of(empty)
    assert rows.notes == rows_of(derived).notes
    assert "D = C / (6 N_active)" in rows.notes
    assert rows.columns["D"].tolist() == rows_of(derived).columns["D"].tolist()
    assert used_columns(LAW, empty, entry(LAW)) == ["C", "L", "N", "S", "status"]


def test_the_order_of_the_table_changes_neither_arrays_nor_digest(simulated):
    rng = np.random.default_rng(0)
    table = simulated(sizes=4)
    table["se"] = rng.uniform(0.01, 0.02, len(table))
    table["block"] = rng.choice(list("abc"), len(table))
    table = pd.concat([table, table.assign(block="b", se=0.05)], ignore_index=True)  # ties
    fields = {"weights": "se", "resample_by": "block", "holdout": "S >= 0.98"}
    tables = table, table.sample(frac=1, random_state=1)
    one, other = (rows_of(t, **fields) for t in tables)
    for name in ("response", "weights", "blocks"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert all((one.columns[name] == other.columns[name]).all() for name in ("N", "D", "S"))
    assert len({digest(t, table.columns) for t in tables}) == 1


def test_laws_of_other_variables_see_the_rows_in_one_order(simulated):
    """A bootstrap draws rows by their place: so do all laws of a comparison draw the same rows."""
    table = simulated(sizes=4)
    table["E"] = np.random.default_rng(0).permutation(len(table)) + 1.0
    first, *others = (
        rows_of(table, laws.fittable(ref)).response.tolist()
        for ref in ("sparsity.loss", "chinchilla", "wang.loss")
    )
    assert others == [first] * 2


def test_weights_are_inverse_squares_of_relative_errors(simulated):
    table = simulated(sizes=4).assign(se=lambda t: 0.01 * t["N"] ** 0.1)
    rows = rows_of(table, weights="se")
    assert rows.weights.mean() == pytest.approx(1)
    relative = 0.01 * rows.columns["N"] ** 0.1 / rows.response
    product = rows.weights * relative**2
    assert product == pytest.approx(product[0])
    # Bits and their errors in bits: the same relative errors.
    bits = table.assign(L=table["L"] / np.log(2), se=table["se"] / np.log(2))
    assert rows_of(bits, weights="se", units={"L": "bits"}).weights == pytest.approx(rows.weights)
    # A surface is fitted to the loss itself, and its errors are absolute.
    rows = rows_of(table, laws.fittable("sparsity.isoflop"), weights="se")
    product = rows.weights * rows.columns["N"] ** 0.2
    assert product == pytest.approx(product[0])


def test_expressions_see_variables_in_their_own_unit_and_derived_ones(simulated):
    table = simulated(sizes=4)
    middle = float(table["N"].median())
    millions = table.assign(N=table["N"] / 1e6).drop(columns="D")
    chosen = rows_of(millions, units={"N": "M"}, rows=f"N < {middle}", holdout="D > 1e11")
    assert chosen.columns["N"].max() < middle
    assert chosen.columns["D"].max() <= 1e11 < chosen.held_columns["D"].min()
    spec = entry(LAW, units={"N": "M"}, rows=f"N < {middle}", holdout="D > 1e11")
    fitted, held = selected_rows(millions, LAW, spec, {})
    assert (fitted.sum(), held.sum()) == (len(chosen.response), len(chosen.held_response))


def test_a_fit_of_one_sweep_sees_its_rows_alone(simulated):
    table = simulated(sizes=4)
    table["sweep"] = np.where(table["S"] > 0, "sparse,all", "all")
    rows = rows_of(table, sweep="sparse")
    assert set(rows.columns["S"]) == set(table["S"]) - {0.0}
    assert rows.left_out == {"not of the sweep sparse": int((table["S"] == 0).sum())}
    assert len(rows_of(table, sweep="all").response) == len(table)
    assert "sweep" in used_columns(LAW, table, entry(LAW, sweep="sparse"))
    assert "sweep" not in used_columns(LAW, table, entry(LAW))
    fitted, held = selected_rows(table, LAW, entry(LAW, sweep="sparse"), {})
    assert (fitted == (table["S"] > 0)).all()
    assert not held.any()


def test_a_group_without_enough_rows_is_left_out_and_counted():
    curve = laws.fittable("leverage.compute")  # two parameters
    place = np.array([0, 1, 2, 0, 0, 1])
    table = pd.DataFrame({"E": [4.0] * 3 + [8.0] + [16.0] * 2, "C": 1e18 * 2.0**place})
    groups = split_rows(curve, table.assign(EL=2.0 + place), entry(curve, split_by="E"))
    assert [rows.where["E"] for rows in groups] == [4, 16]
    assert groups[0].left_out == {"fewer than 2 rows at E = 8": 1}
    np.testing.assert_array_equal(groups[1].response, [2, 3])


def test_errors_of_a_logarithm_are_doubted_as_errors_of_the_value():
    """An error of .02 of ln M is no .02 parameters: as weights they would be M^2 all over."""
    size = laws.fittable("leverage.allocation:M")
    table = pd.DataFrame({"C": np.geomspace(1e18, 1e20, 8), "M": 1e8, "se": 0.02})
    (warning,) = rows_of(table, size, weights="se").warnings
    assert "2e-10 of the value: is it one of its log" in warning
    assert rows_of(table.assign(se=1e5), size, weights="se").warnings == ()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("L", np.nan, r"row 4 \(run r3\): column L is nan; L must be a number above 0"),
        ("L", 1e300, "row 4 .* L is 1e.300; L must be a number above 0 and below 1e100"),
        ("S", 1.0, "row 4 .* column S is 1; S must be at least 0 and below 1"),
        ("N", 0.0, "row 4 .* column N is 0; N must be a number above 0"),
        ("run_id", "r2", "rows 3 and 4 both have run_id r2"),
    ],
)
def test_a_value_that_a_row_cannot_have(simulated, column, value, message):
    table = simulated(sizes=4)
    table["run_id"] = [f"r{i}" for i in range(len(table))]
    table.loc[3, column] = value
    with pytest.raises(UserError, match=message):
        fitted(LAW, table)


def test_a_bad_row_that_is_not_used_is_no_mistake(simulated):
    table = simulated(sizes=4)
    table.loc[3, "L"] = np.nan
    assert rows_of(table, rows="L > 0").left_out == {"not in rows: L > 0": 1}
    assert rows_of(table, drop_missing=True).left_out == {"an empty cell": 1}
    table.loc[3, "status"] = "diverged"
    assert rows_of(table).left_out == {"status is diverged": 1}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mapping": {"L": "loss"}}, "no column 'loss' for L of sparsity.loss"),
        ({"mapping": {"Q": "N"}}, "mapping: 'Q' is not a variable of sparsity.loss; it has"),
        ({"mapping": {"N": "status"}}, "row 1: column status is 'completed'; it must be a number"),
        ({"rows": "S > 2"}, r"no row is left to fit; left out: 72 \(not in rows: S > 2\)"),
        ({"holdout": "S > 0.99"}, "holdout 'S > 0.99' selects none of the 72 rows"),
        ({"holdout": "S >= 0"}, "0 rows are left to fit the 10 parameters .* held out: 72"),
        ({"rows": "S < 0.1"}, "12 rows cannot determine c, e, lambda and delta .* all have S = 0"),
        ({"protocol": {"steps": 3}}, "protocol: unknown key steps; .* delta, grid, objective"),
        ({"mapping": {"N": "D"}}, "column 'D' is mapped to N and D of sparsity.loss; each needs"),
        ({"split_by": "e"}, "split_by: sparsity.loss has a parameter e, so the column needs"),
        ({"fixed": {"z": 1.0}}, "fit f: sparsity.loss has no parameter 'z'; it has a"),
        ({"fixed": {"e": 1}, "priors": {"e": [1, 1]}}, "e is fixed, so that it has no prior"),
    ],
)
def test_an_entry_that_does_not_fit_the_table(simulated, fields, message):
    with pytest.raises(UserError, match=message):
        fitted(LAW, simulated(sizes=4), **fields)


@pytest.mark.parametrize(
    ("change", "fields", "message"),
    [
        ({"N": 1.5}, {}, r"N is at most 1\.5 parameters; say its unit with --unit N=M or"),
        ({"S": 75.0}, {}, r"S is 75 at most and should not be above 1; .* --unit S=percent"),
        ({"L": 300.0}, {}, "L is 300 nats/token in the median row; map .* logarithm .* perplex"),
        ({"L": 1.0}, {}, "L is 1 in every row, as no losses are"),
        ({"L_se": 0.0}, {"weights": "L_se"}, "row 1: column L_se is 0, as the standard error of L"),
        ({"run": "a"}, {"resample_by": "run"}, "resample_by run: all 72 rows are one block"),
        ({"D": np.nan, "flops": np.nan}, {"mapping": {"C": "flops"}}, r"the table's column flops,"),
        ({"S": np.nan, "E": 16, "k": 16.5}, {}, r"row 1: S = \(E - k\) / E is -0\.03125, as in 71"),
    ],
)
def test_a_table_in_other_units_or_without_what_is_needed(simulated, change, fields, message):
    with pytest.raises(UserError, match=message):
        rows_of(simulated(sizes=4).assign(**change), **fields)


def test_a_unit_says_that_unlikely_numbers_are_meant(simulated):
    table = simulated(sizes=4)
    small = table.assign(N=table["N"] / 1e9)
    with pytest.raises(UserError, match="if the column is right, say --unit N=1"):
        rows_of(small)
    assert rows_of(small, units={"N": 1}).columns["N"].max() < 1e3
    billions = rows_of(small, units={"N": "B"})
    assert np.sort(billions.columns["N"]) == pytest.approx(np.sort(table["N"]))
    assert billions.notes == ("N = 1e+09 x column N (unit B)",)


def test_a_strangers_status_and_source_are_ordinary_columns(simulated, tmp_path):
    """FINISHED and a source of data mean nothing here; our words do, in any table."""
    theirs = simulated(sizes=4).assign(source="c4", status="FINISHED")
    theirs.loc[0, "status"] = "CRASHED"
    theirs.to_csv(tmp_path / "runs.csv", index=False)
    frame, units = read_any(tmp_path / "runs.csv")
    rows = rows_of(frame, declared=units)
    assert (len(rows.response), rows.left_out) == (72, {})
    finished = rows_of(frame, declared=units, rows="status == FINISHED")
    assert len(finished.response) == 71
    assert source_of(frame) == "imported"
    ours = frame.assign(source="simulated", status="diverged")
    assert source_of(ours) == "simulated"
    ours.loc[0, "status"] = "out_of_memory"
    told = "no row is left to fit; left out: 71 .status is diverged., 1 .status is out_of_memory."
    for holdout in ("", "S > 0.9"):
        with pytest.raises(UserError, match=told):
            rows_of(ours, holdout=holdout)


def test_numbers_as_people_write_them_are_the_numbers(simulated):
    """FLOPs that are written out are no 64-bit numbers, and sizes may be in thousands or M."""
    table = simulated(sizes=4).round({"N": -3, "D": 0})
    texts = {
        "C": [f"{int(C)}" for C in table["C"]],
        "N": [f"{N / 1e6:.3f}M" for N in table["N"]],
        "D": [f"{D:,.0f}" for D in table["D"]],
    }
    fields = {"rows": "C > 1e20 and N < D", "holdout": "C > 5e20", "best_per": ["N", "C", "S"]}
    written, plain = (rows_of(t, **fields) for t in (table.assign(**texts), table))
    for name in ("N", "D", "S"):
        assert written.columns[name].tolist() == plain.columns[name].tolist()
        assert written.held_columns[name].tolist() == plain.held_columns[name].tolist()
    assert len(plain.held_response) > 0
