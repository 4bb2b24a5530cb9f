"""Intervals beyond the fitted compute, where the law is right and where it is wrong."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fitting_case import fitted, fitted_group

from command_line import printed
from moelaws import laws
from moelaws.fitting.diagnostics import Calibration
from moelaws.fitting.prediction import predict, reaches
from moelaws.fitting.rollout import BUDGETS, Average

LAW = laws.fittable("chinchilla")
QUICK = {"bootstrap": 40, "protocol": {"sample": 40}}
BUDGET = np.array([1e18, 3e18, 1e19, 3e19, 1e20, 3e20])


def isoflops(seed, noise=0.003, bend=0.0, budgets=BUDGET):
    """Losses on six budgets of nine sizes; ``bend`` is how wrong the law is a decade squared."""
    rng = np.random.default_rng(seed)
    C = np.repeat(budgets, 9)
    best = 0.1 * C**0.5
    N = best * np.tile(np.geomspace(0.25, 4, 9), len(budgets))
    D = C / (6 * N)
    wrong = -bend * np.log10(C / 1e18) ** 2
    L = LAW.predict(LAW.published, {"N": N, "D": D})
    table = pd.DataFrame({"C": C, "N": N, "D": D, "L": L * np.exp(wrong)})
    table["L"] *= np.exp(noise * rng.standard_normal(len(C)))
    return table


def held(report, above, level=0.9):
    """Returns the fractions of losses inside the law's own interval and the calibrated one."""
    (group,) = report.parts
    draws = report.draws[list(LAW.names)].to_numpy()
    columns = {name: above[name].to_numpy() for name in ("N", "D")}
    fractions = []
    for own in (None, group.calibration):
        at = predict(LAW, replace(group, calibration=own), draws, columns, level)
        fractions.append(((at.new_low <= above["L"]) & (above["L"] <= at.new_high)).mean())
    return fractions


@pytest.mark.slow
@pytest.mark.parametrize(("bend", "own_holds"), [(0.0, True), (0.004, False)])
def test_new_budgets_are_held_whether_the_law_is_right_or_wrong(bend, own_holds):
    counts = []
    for seed in range(8):
        table = isoflops(seed, bend=bend, budgets=np.append(BUDGET, 1.5e21))
        below, above = table[table["C"] < 1e21], table[table["C"] > 1e21]
        counts.append(held(fitted(LAW, below, **QUICK), above))
    own, calibrated = np.mean(counts, axis=0)
    assert calibrated >= 0.85
    assert (own >= 0.75) == own_holds


def test_rounds_are_fits_to_the_cheaper_rows():
    """Each rate is that of a fit by hand to the rows up to a budget, from the law's own starts."""
    table = isoflops(0, bend=0.004)
    group = fitted_group(LAW, table, bootstrap=1)
    by_hand = []
    for cut in BUDGET[2:-1]:
        below, above = table[table["C"] <= cut], table[table["C"] > cut]
        own = fitted_group(LAW, below, bootstrap=1).estimates()
        error = np.log(above["L"] / LAW.predict(own, {"N": above["N"], "D": above["D"]}))
        by_budget = error.groupby(above["C"]).mean()
        by_hand.append((by_budget / np.log10(by_budget.index / cut)).mean())
    assert group.calibration.rates == pytest.approx(by_hand, rel=1e-3)
    assert group.calibration.largest == pytest.approx(np.log10(BUDGET[-1] / 6))


def test_it_grows_with_the_distance_and_is_nothing_within_the_rows():
    own = Calibration({"C": 1.0}, 20.0, [0.02, 0.03, 0.02], 0.004)
    mean, new = reaches(own, {"C": 10.0 ** np.array([18, 20, 20.5, 21, 22])}, 0.9)
    assert np.isnan(mean[:2]).all()
    assert np.isnan(new[:2]).all()
    assert mean[3] / mean[2] == pytest.approx(2)
    assert mean[4] / mean[3] == pytest.approx(2)
    assert (new[2:] > mean[2:]).all()


def test_of_few_budgets_fits_to_public_runs_speak_and_the_fit_says_so_first():
    table = isoflops(0, budgets=BUDGET[:BUDGETS])
    report = fitted(LAW, table, **QUICK)
    (group,) = report.parts
    assert not group.calibration.has_rounds
    assert group.notes[0].startswith("these rows have too few budgets to calibrate intervals")
    assert "erred by 2.6 % a decade" in group.notes[0]
    at = {"N": np.array([4e8, 7e9]), "D": np.array([3e9, 3e10])}
    draws = report.draws[list(LAW.names)].to_numpy()
    own = predict(LAW, group, draws, at, 0.9)
    alone = predict(LAW, replace(group, calibration=None), draws, at, 0.9)
    assert own.low[0] == alone.low[0]  # within the rows
    decades = np.log10(at["N"][1] * at["D"][1]) - group.calibration.largest
    assert np.log(own.high / own.value)[1] == pytest.approx(1.74 * 0.026 * decades, rel=2e-3)
    assert own.new_high[1] > alone.new_high[1]


def average_of(table, refs):
    reports = [fitted(laws.fittable(ref), table, **QUICK) for ref in refs]
    return Average.of([laws.fittable(ref) for ref in refs], [r.parts[0] for r in reports])


def test_an_average_of_one_law_is_that_law():
    table = isoflops(2, bend=0.004)
    own, both = average_of(table, ["chinchilla"]), average_of(table, ["chinchilla"] * 2)
    at = {"N": np.array([7e9]), "D": np.array([3e11])}
    assert both.weights == pytest.approx([0.5, 0.5])
    alone, twice = vars(own.predict([at], 0.9)), vars(both.predict([at] * 2, 0.9))
    for name, value in alone.items():
        assert value == pytest.approx(twice[name])
    assert own.predict([at], 0.9).value == pytest.approx(LAW.predict(own.fits[0].estimates(), at))


def test_an_average_prefers_the_law_that_rolls_out_better():
    """The losses are of a law of size and data, and one law of the two knows the size alone."""
    table = isoflops(3, noise=0.001)
    average = average_of(table, ["chinchilla", "marin:loss"])
    assert average.weights[0] > 0.9
    assert sum(average.weights) == pytest.approx(1)


def test_compare_says_how_many_held_out_rows_are_inside_and_predicts_a_point(tmp_path):
    runs = tmp_path / "runs.csv"
    isoflops(4, bend=0.004).to_csv(runs, index=False)
    words = ["compare", runs, "--laws", "chinchilla,marin:loss", "--holdout", "C > 1e20"]
    words += ["--bootstrap", 40, "--at", "N=7e9 D=3e10 C=1.26e21", "--json"]
    data = json.loads(printed(*words))
    inside = {law["law"]: law["holdout"]["inside"] for law in data["laws"]}
    assert all(0 <= fraction <= 1 for fraction in inside.values())
    average = data["average"]
    assert set(average["weights"]) == {"chinchilla", "marin:loss"}
    values = {law["law"]: law["at"]["value"] for law in data["laws"]}
    logs = [weight * np.log(values[law]) for law, weight in average["weights"].items()]
    assert average["at"]["value"] == pytest.approx(np.exp(sum(logs)))
    assert average["at"]["new_low"] < average["at"]["value"] < average["at"]["new_high"]
