"""What Eq 5 (leverage) and Step Law lose on the public searches of Step Law's authors.

The tables are data/dense_lr_bs_loss.csv and data/moe_lr_bs_loss.csv of step-law/steplaw on GitHub;
they have no licence and are not shipped. Each pair of model and tokens was trained with some 45 or
120 pairs of rate and batch. A law loses what the pair nearest to its own, as logarithms and inside
the search, ends above the best one (smoothed training loss). C is 6 N_active D.

    python benchmarks/step_law.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from moelaws import laws

FILES = {"mixtures": "moe_lr_bs_loss.csv", "dense models": "dense_lr_bs_loss.csv"}
CONTEXT = 2048
LOSS = "smooth loss"


def lost(search: pd.DataFrame, lr: float, batch: float) -> float:
    """Returns the loss above the best of a search, of the pair nearest to ``lr`` and ``batch``."""
    runs = np.log(search[["lr", "bs"]].to_numpy(float))
    own = np.clip(np.log([lr, batch]), runs.min(axis=0), runs.max(axis=0))
    nearest = np.sum((runs - own) ** 2, axis=1).argmin()
    return float(search[LOSS].iloc[nearest] - search[LOSS].min())


def losses(file: Path) -> dict[str, list[float]]:
    """Returns what each law loses in each search of a table."""
    runs = pd.read_csv(file).dropna(subset=["N", "D", "lr", "bs", LOSS])
    runs["Na"] = runs.get("Na", runs["N"])
    by_law: dict[str, list[float]] = {}
    for _, search in runs.groupby(["Na", "N", "D"]):
        N_active, N, D = (float(search[name].iloc[0]) for name in ("Na", "N", "D"))
        eq_5 = {"C": 6 * N_active * D, "context": CONTEXT}
        step_law = laws.get("step_law")
        values = {
            "Eq 5": laws.get("leverage.hyperparameters").evaluate({}, eq_5),
            "Step Law": step_law.evaluate({}, {"N": N, "D": D, "context": CONTEXT}),
            "Step Law, N active": step_law.evaluate(
                {}, {"N": N_active, "D": D, "context": CONTEXT}
            ),
        }
        for law, value in values.items():
            loss = lost(search, float(value["lr"]), float(value["B_sequences"]))
            by_law.setdefault(law, []).append(loss)
    return by_law


def main(folder: Path) -> None:
    """Prints the mean and the largest loss of each law, by kind of model."""
    for kind, file in FILES.items():
        for law, values in losses(folder / file).items():
            print(f"{kind}, {law}: {np.mean(values):.3f} (to {max(values):.3f}), {len(values)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
