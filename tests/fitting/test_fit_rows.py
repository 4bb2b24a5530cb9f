"""From a table to arrays: derivations, units, weights, blocks, and the order of the rows."""

import numpy as np
import pandas as pd
import pytest
from fitting_case import entry

from moelaws import laws
from moelaws.fitting.rows import digest, selected_rows, split_rows, used_columns

LAW = laws.fittable("sparsity.loss")


def rows_of(table, of=LAW, **fields):
    (rows,) = split_rows(of, table, entry(of, **fields))
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


@pytest.mark.parametrize(("name", "groups"), [("data", ["c4", "pile"]), ("rank", [1, 2])])
def test_a_fit_is_split_by_words_as_by_numbers(simulated, name, groups):
    table = simulated(sizes=4)
    first = np.arange(len(table)) % 2 == 0
    table["data"], table["rank"] = np.where(first, "c4", "pile"), np.where(first, "1", "2")
    table.loc[0, ["data", "rank"]] = None
    split = split_rows(LAW, table, entry(LAW, split_by=name))
    assert [rows.where for rows in split] == [{name: group} for group in groups]
    assert [len(rows.response) for rows in split] == [35, 36]
    assert split[0].left_out == {f"no value of {name}": 1}
    (chosen,) = split_rows(LAW, table, entry(LAW, rows="data == pile"))
    assert chosen.response.tolist() == split[1].response.tolist()
    fitted, _ = selected_rows(table, LAW, entry(LAW), split[1].where)
    assert fitted.tolist() == (~first).tolist()


def test_rows_that_stand_twice_are_warned_of_and_counted(simulated):
    table = simulated(sizes=4)
    tripled = pd.concat([table, table.iloc[:5], table.iloc[:5]])
    seeds = tripled.assign(seed=range(len(tripled)))  # runs that differ in one column are no copies
    some = {"rows": f"N > {table['N'][1]}"}
    for of, fields, count in (
        (tripled, {}, 10),
        (tripled, some, 4),
        (table, {}, 0),
        (seeds, {}, 0),
    ):
        twice = [text for text in rows_of(of, **fields).warnings if "twice" in text]
        assert [text.partition(":")[0] for text in twice] == (
            [f"{count} rows stand twice"] if count else []
        )


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
    orders = [
        rows_of(table, laws.fittable(ref)).response.tolist()
        for ref in ("sparsity.loss", "chinchilla", "wang.loss")
    ]
    assert orders[0] == orders[1] == orders[2]


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


def test_weights_of_a_law_on_the_loss_itself_are_of_absolute_errors(simulated):
    surface = laws.fittable("sparsity.isoflop")
    assert not surface.log_response
    table = simulated(sizes=4).assign(se=lambda t: 0.01 * t["N"] ** 0.1)
    rows = rows_of(table, surface, weights="se")
    product = rows.weights * rows.columns["N"] ** 0.2
    assert product == pytest.approx(product[0])


@pytest.mark.parametrize("column", ["C", "name"])
def test_blocks_are_the_values_of_a_column(simulated, column):
    table = simulated(sizes=4).assign(name=lambda t: "at " + t["C"].astype(str))
    rows = rows_of(table, resample_by=column, rows="S < 0.9")
    assert sorted(set(rows.blocks.tolist())) == [0, 1, 2]
    compute = 6 * (1 - rows.columns["S"]) * rows.columns["N"] * rows.columns["D"]
    for block in range(3):
        assert np.ptp(np.log(compute[rows.blocks == block])) < 1e-9
    assert (rows.weights, rows_of(table).blocks) == (None, None)


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


def test_new_fields_leave_the_text_of_old_entries_alone():
    """A fit runs again where its entry's canonical JSON changes, and only there."""
    old = entry(LAW, mapping={"N": "N_total"}, holdout="S >= 0.9")
    assert old.canonical_json() == (
        '{"holdout":"S >= 0.9","law":"sparsity.loss","mapping":{"N":"N_total"},"name":"f"}'
    )
    assert entry(LAW, units={"N": 1e6}).units == {"N": "1e+06"}


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


CURVE = laws.fittable("leverage.compute")  # two parameters
SPLIT = entry(CURVE, split_by="E")


def leverages(counts):
    rows = [
        {"E": E, "C": 1e18 * 2.0**i, "EL": 2.0 + i} for E, n in counts.items() for i in range(n)
    ]
    return pd.DataFrame(rows)


def test_a_group_without_enough_rows_is_left_out_and_counted():
    groups = split_rows(CURVE, leverages({4.0: 3, 8.0: 1, 16.0: 2}), SPLIT)
    assert [rows.where["E"] for rows in groups] == [4, 16]
    assert groups[0].left_out == {"fewer than 2 rows at E = 8": 1}
    np.testing.assert_array_equal(groups[1].response, [2, 3])


@pytest.mark.parametrize(
    ("error", "unit", "text"),
    [
        (0.02, "1", "2e-10 of the value: is it one of its log"),
        (2e8, "1", "2 of the value"),
        (0.1, "1e6", ""),
    ],
)
def test_errors_of_a_logarithm_are_doubted_as_errors_of_the_value(error, unit, text):
    """An error of .02 of ln M is no .02 parameters: as weights they would be M^2 all over."""
    size = laws.fittable("leverage.allocation:M")
    table = pd.DataFrame({"C": np.geomspace(1e18, 1e20, 8), "M": 1e8, "se": error})
    table["M"] /= float(unit)
    (warning,) = rows_of(table, size, weights="se", units={"M": unit}).warnings or ("",)
    assert text in warning
    assert bool(text) == bool(warning)
