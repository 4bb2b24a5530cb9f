"""How often do intervals beyond the fitted compute hold new losses? Nested roll-outs of tables.

    python benchmarks/calibration.py TABLE... [--laws chinchilla,farseer]

Each TABLE has columns N (or N_active), D and L (or bpb). Its rows up to each budget are fitted, and
the rows above are predicted: by a law's own interval, by the calibrated one, which rests on
roll-outs of the fitted rows alone, and by the average of the laws. A roll-out counts once, however
many rows it has. The last lines are means over all roll-outs of all tables.
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
             for pair in (("N_active", "N"), ("D",), ("L", "bpb"))]  # fmt: skip
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
            if own.calibration is None:
                continue
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--laws", default="chinchilla,farseer")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
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
