"""The learning-rate search behind the demo tier's law.

Trains the demo's models at several rates, finds each configuration's best rate by a parabola in
ln(rate), and fits best = value * (d_model / 32) ** p * (C / 1e11) ** q by least squares. Writes
every loss to a CSV. Runs that were trained before are not trained again.

    python benchmarks/learning_rate.py --jobs 2 --out results/learning_rate.csv
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from moelaws.grids.expand import Run, expand
from moelaws.grids.sweep import project_sources
from moelaws.grids.text import choose_corpus
from moelaws.records.files import read_json
from moelaws.records.layout import Results
from moelaws.spec.base import parse
from moelaws.spec.grid import Grid, Sweep
from moelaws.spec.project import load_project, load_study

# Budget, width and the rates around its best: smaller models want larger ones.
DESIGN = (
    (5e10, 12, (0.012, 0.024, 0.048)),
    (5e10, 24, (0.006, 0.012, 0.024)),
    (3e11, 24, (0.006, 0.012, 0.024)),
    (3e11, 48, (0.006, 0.012, 0.024)),
)
SWEEPS = tuple(
    Sweep(axes={"C": budget, "S": (0.0, 0.9375), "d_model": width, "lr": rates, "seed": 0})
    for budget, width, rates in DESIGN
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/learning_rate.csv"))
    args = parser.parse_args()
    project, results = load_project(), Results()
    grid = load_study("sparsity").grids["demo"].model_copy(update={"sweeps": SWEEPS})
    text = choose_corpus(project, project_sources(project))
    runs = expand(parse(Grid, grid.model_dump(exclude_unset=True), "search"), text, "search")
    with ThreadPoolExecutor(args.jobs) as pool:
        losses = list(pool.map(lambda run: train(run, results), runs))
    rows = [
        (r.C, r.config.model.ffn.sparsity, r.config.model.d_model, r.config.optimizer.lr, loss)
        for r, loss in zip(runs, losses, strict=True)
    ]
    with args.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["C", "S", "d_model", "lr", "L"])
        writer.writerows(rows)
    report(rows)


def train(run: Run, results: Results) -> float:
    """Validation loss of ``run`` (NaN if it diverged), trained if it was not before."""
    path = results.summary(run.run_id)
    if not path.exists():
        subprocess.run(
            [Path(sys.executable).with_name("moelaws"), "train", "-"],
            input=run.config.canonical_json().encode(),
            stderr=subprocess.DEVNULL,
            check=True,
        )
    loss = read_json(path)["loss"]
    return float("nan") if loss is None else loss


def report(rows: list[tuple[float, float, int, float, float]]) -> None:
    """Print losses by rate, each configuration's best rate, and the power law through them."""
    best = []
    for key in sorted({row[:3] for row in rows}):
        points = [(row[3], row[4]) for row in rows if row[:3] == key and np.isfinite(row[4])]
        rates, losses = np.array(points).T
        a, b, _ = np.polyfit(np.log(rates), losses, 2)
        optimum = float(np.exp(-b / (2 * a))) if a > 0 else float(rates[losses.argmin()])
        inside = a > 0 and rates.min() < optimum < rates.max()
        best.append((*key, optimum, inside))
        shown = " ".join(f"{loss:.4f}" for loss in losses)
        mark = "" if inside else "  (at the edge of the rates tried)"
        print(f"C={key[0]:.3g} S={key[1]:.4g} d={key[2]}: {shown}  best {optimum:.2e}{mark}")
    kept = [b for b in best if b[4]]
    design = np.array([[1, np.log(d / 32), np.log(c / 1e11)] for c, _, d, _, _ in kept])
    target = np.log([b[3] for b in kept])
    (value, p, q), *_ = np.linalg.lstsq(design, target, rcond=None)
    spread = np.std(target - design @ np.array([value, p, q]))
    print(
        f"best = {np.exp(value):.3e} * (d_model / 32)^{p:.3f} * (C / 1e11)^{q:.3f}, "
        f"scatter of ln(best) {spread:.2f}, from {len(kept)} of {len(best)} configurations"
    )


if __name__ == "__main__":
    main()
