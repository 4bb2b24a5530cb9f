"""How often do intervals beyond the fitted compute hold new losses? Nested roll-outs of tables.

    python benchmarks/calibration.py TABLE... [--laws A,B,...] [--few]

Each TABLE has columns N (or N_active, or N_active_nonemb), D and L (or bpb). Its rows up to each
budget are fitted, and the rows above are predicted: by a law's own interval, by the calibrated one,
which rests on roll-outs of the fitted rows alone, and by the average of the laws. A roll-out counts
once, however many rows it has. The last lines are means over all roll-outs of all tables. With
``--few`` the first law is fitted to three or four budgets in turn, which calibrate nothing, and the
lines are the root mean squares of its errors a decade, on rows of 1.6 to 6.3 times the compute.
"""

import argparse
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.fitting.prediction import predict
from moelaws.fitting.rollout import Average, budgets, thresholds
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit
from moelaws.tables.foreign import read_any

LEVEL = 0.9


def losses(path: Path) -> pd.DataFrame:
    """Returns the completed runs of a table as columns N, D and L."""
    frame, _ = read_any(path)
    if "status" in frame:
        frame = frame[frame["status"] == "completed"]
    names = [next(n for n in pair if n in frame and frame[n].notna().any())
             for pair in (("N_active", "N", "N_active_nonemb"), ("D",), ("L", "bpb"))]  # fmt: skip
    frame = frame[names].set_axis(["N", "D", "L"], axis=1).astype(float).dropna()
    return frame[(frame > 0).all(axis=1)].sort_values(["N", "D", "L"]).drop_duplicates(["N", "D"])


def judged(table: pd.DataFrame, refs: list[str]) -> pd.DataFrame:
    """Returns a row for each roll-out and way of predicting: how many new losses it holds."""
    compute = np.log10((table["N"] * table["D"]).to_numpy())
    budget, rows = budgets(compute), []
    for cut in thresholds(budget):
        below, above = table[budget <= cut], table[budget > cut]
        columns = {name: above[name].to_numpy() for name in ("N", "D")}
        observed, members = above["L"].to_numpy(), []
        for ref in refs:
            law = laws.fittable(ref)
            spec = Fit(name="f", law=ref, mapping={}, protocol={"sample": 100}, bootstrap=40)
            try:
                report = fit(law, below, spec)
            except UserError:
                continue
            own = report.parts[0]
            if not (own.calibration and own.calibration.has_rounds):
                continue
            if own.converged:
                members.append((law, own))
            draws = report.draws[list(law.names)].to_numpy()
            for how, group in (("own", replace(own, calibration=None)), ("calibrated", own)):
                rows.append(
                    (cut, f"{ref}, {how}", predict(law, group, draws, columns, LEVEL), observed)
                )
        if len(members) > 1:
            average = Average.of(*zip(*members, strict=True))
            rows.append(
                (cut, "average", average.predict([columns] * len(members), LEVEL), observed)
            )
    return pd.DataFrame(
        {
            "cut": cut,
            "how": how,
            "inside": ((p.new_low <= observed) & (observed <= p.new_high)).mean(),
            "width": np.median(np.log(p.new_high / p.new_low)),
            "error": np.median(np.abs(np.log(observed / p.value))),
        }
        for cut, how, p, observed in rows
    )


def few(table: pd.DataFrame, ref: str) -> list[float]:
    """Returns the error per decade of each fit to three or four budgets, in ln L."""
    law, compute = laws.fittable(ref), np.log10((table["N"] * table["D"]).to_numpy())
    budget, rates = budgets(compute), []
    if len(np.unique(budget)) > 10:  # a grid of sizes and tokens, cut every half decade
        budget = np.round(2 * compute)
    every = np.unique(budget)
    for count, first in ((k, i) for k in (3, 4) for i in range(len(every) - k)):
        known = np.isin(budget, every[first : first + count])
        beyond = compute - compute[known].max()
        above = (budget > every[first + count - 1]) & (beyond >= 0.2) & (beyond <= 0.8)
        if known.sum() < 2 * law.n_free or above.sum() < 2:
            continue
        entry = {"law": ref, "mapping": {}, "units": {"L": "1"}, "protocol": {"sample": 50}}
        try:
            fitted = fit(law, table[known], Fit(name="f", bootstrap=1, **entry), calibrated=False)
        except UserError:
            continue
        predicted = law.predict(fitted.parts[0].estimates(), table[above])
        rates.append(float(np.log(table["L"][above] / predicted).mean() / beyond[above].mean()))
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--laws", default="chinchilla,farseer,skaling")
    parser.add_argument("--few", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.few:
        for path in given.tables:
            rates = np.array(few(losses(path), given.laws.split(",")[0]))
            rms = np.sqrt((rates**2).mean()) if len(rates) else np.nan
            print(f"{path.name}: {len(rates)} fits, {rms:.4f} a decade", flush=True)
        return
    every = []
    for path in given.tables:
        one = judged(losses(path), given.laws.split(","))
        if not len(one):
            print(f"{path.name}: no roll-out", file=sys.stderr)
            continue
        every.append(one.assign(table=path.stem))
        print(path.name, flush=True)
        print(one.groupby("how")[["inside", "width", "error"]].mean().round(3).to_string())
    whole = pd.concat(every)
    print("all roll-outs of all tables")
    print(whole.groupby("how")[["inside", "width", "error"]].mean().round(3).to_string())
    print(whole.groupby("how").size().to_string())


if __name__ == "__main__":
    main()
