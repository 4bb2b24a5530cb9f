"""Rows of one budget or one curve may err together: the table shows them, and blocks are drawn."""

import numpy as np
import pandas as pd
import pytest
from fitting_case import fitted, fitted_group
from scipy.stats import norm
from scipy.stats import t as student_t

from moelaws import laws
from moelaws.fitting.prediction import predict
from moelaws.fitting.quantiles import widening
from moelaws.studies.sparsity.laws.loss import optimal_size

LAW = laws.fittable("chinchilla")
QUICK = {"protocol": {"sample": 24}, "bootstrap": 100}


def isoflop(budgets, *, common=0.0, own=0.003, seed=0, sizes=8):
    """Losses at so many budgets, with an error common to a budget and one of each run's own."""
    rng = np.random.default_rng(seed)
    C = np.repeat(np.geomspace(1e18, 1e21, budgets), sizes)
    N = np.sqrt(C / 120) * np.tile(np.geomspace(1 / 6, 6, sizes), budgets)
    table = pd.DataFrame({"C": C, "N": N, "D": C / (6 * N)})
    errors = np.repeat(common * rng.standard_normal(budgets), sizes)
    errors += own * rng.standard_normal(len(C))
    return table.assign(L=LAW.predict(LAW.published, table) * np.exp(errors))


@pytest.mark.parametrize(
    ("budgets", "changed", "intervals", "told"),
    [
        (6, {}, " over blocks of rows by C, widened for 6 blocks", "6 values of C, whose rows may"),
        (6, {"resample_by": "rows"}, " over rows", ""),
        (3, {}, " over rows", "share 3 values of C, too few"),
        (6, {"C": 1e18 * 1.01 ** np.arange(48)}, " over rows", ""),
        # Checkpoints of a run err together, whatever their budgets
        (
            *(6, {"run_name": [f"run {i // 6}" for i in range(48)]}),
            *(" over blocks of rows by run_name, widened for 8 blocks", "8 values of run_name"),
        ),
    ],
)
def test_rows_that_may_err_together_are_drawn_together_and_the_report_says_so(
    budgets, changed, intervals, told
):
    columns = {name: x for name, x in changed.items() if name != "resample_by"}
    fields = {name: x for name, x in changed.items() if name == "resample_by"}
    group = fitted_group(LAW, isoflop(budgets).assign(**columns), **QUICK, **fields)
    assert group.intervals == f"percentile bootstrap{intervals}"
    said = [text for text in (*group.notes, *group.warnings) if " values of " in text]
    assert len(said) == bool(told)
    assert told in "".join(said)


def test_bootstrap_of_a_mean_of_few_blocks_is_widened_to_students_t():
    """The textbook's interval of a mean of five, against 20,000 resampled means."""
    x = np.random.default_rng(0).standard_normal(5)
    draws = np.random.default_rng(1).choice(x, (20_000, 5)).mean(axis=1)
    z, t = norm.ppf(0.95), student_t.ppf(0.95, 4)
    widened = widening(5, 0.9) * z * draws.std()
    assert widened == pytest.approx(t * x.std(ddof=1) / np.sqrt(5), rel=0.02)


def test_draws_over_blocks_predict_hardly_wider_than_the_noise():
    """Ten parameters and four budgets: stretched parameters predicted losses up to 7.2."""
    law, C, S = laws.fittable("sparsity.loss"), np.geomspace(1e19, 1e21, 4), (0, 0.5, 0.75, 0.9)
    grid = np.array(np.meshgrid(C, [*S, 0.97], np.geomspace(1 / 4, 4, 6), indexing="ij"))
    table = pd.DataFrame(grid.reshape(3, -1).T, columns=["C", "S", "size"])
    table["N"] = optimal_size(law.published, table["S"], table["C"]).N * table["size"]
    table["D"] = table["C"] / (6 * (1 - table["S"]) * table["N"])
    noise = 0.003 * np.random.default_rng(3).standard_normal(len(table))
    table["L"] = law.predict(law.published, table) * np.exp(noise)
    fields = {"protocol": {"sample": 60}, "bootstrap": 60}
    report = fitted(law, table.drop(columns="size"), **fields)
    draws = report.draws[list(law.names)].to_numpy()
    at = predict(law, report.parts[0], draws, {"N": 1e9, "D": 2e10, "S": 14 / 17}, 0.9)
    width = np.log(at.new_high / at.new_low)[0] / (2 * norm.ppf(0.95) * 0.003)
    assert 0.9 < width < 1.5  # of that of the noise


def coverage(table_of, seeds, **fields):
    """The fractions of 90 % intervals of the mean loss and of coefficients that hold the truth."""
    held = []
    for seed in range(seeds):
        table = table_of(seed)
        report = fitted(LAW, table, **QUICK, **fields)
        (group,) = report.parts
        draws = report.draws[list(LAW.names)].to_numpy()
        truth = LAW.predict(LAW.published, table)
        at = predict(LAW, group, draws, {name: table[name] for name in "ND"}, 0.9)
        own = [p.low <= LAW.published[name] <= p.high for name, p in group.params.items()]
        held.append([((at.low <= truth) & (truth <= at.high)).mean(), np.mean(own)])
    return np.mean(held, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(("common", "own"), [(0, 0.003), (0.003, 0.001)])
def test_intervals_cover_whether_or_not_errors_are_common_to_a_budget(common, own):
    def table_of(seed):
        return isoflop(6, common=common, own=own, seed=seed)

    of_mean, of_coefficients = coverage(table_of, 100)
    assert 0.82 < of_mean < 0.96
    assert 0.84 < of_coefficients < 1
    if common > own:
        assert coverage(table_of, 100, resample_by="rows")[0] < 0.72
