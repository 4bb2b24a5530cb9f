"""Do the intervals hold the truth? Every law with published coefficients, fitted to simulated runs.

For each law its losses are simulated at its paper's own points (``recovery_designs``), with noise
of a stated size, and fitted; so many times with new noise. Counted is how often the 90 % intervals
hold the truth: those of the mean the law's own value at the points, those of a new observation
another noisy loss there, those of each parameter its value. Writes JSON and a Markdown table.

    python benchmarks/recovery.py --seeds 200 --jobs 2 --out results/recovery.json
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: the processes share the cores

import argparse
import math
import platform
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from moelaws import laws
from moelaws.files.atomic import finite, write_json, write_text
from moelaws.fitting.fit import fit
from moelaws.fitting.prediction import predict
from moelaws.laws.base import Array, FittableLaw
from moelaws.spec.fit import ROWS, Fit
from recovery_designs import DESIGNS

LEVEL = 0.9


@dataclass(frozen=True)
class Trial:
    """One simulated table and its fit.

    Attributes:
        mean: share of the points whose true value lies in the interval of the mean.
        new: share of the points where a new noisy value lies in the prediction interval.
        holds: parameter -> whether its interval holds the truth.
        low, high: parameter -> that interval.
        bound: parameters whose interval reaches a bound of the law.
        converged: whether the optimum is certified.
    """

    mean: float
    new: float
    holds: dict[str, bool]
    low: dict[str, float]
    high: dict[str, float]
    bound: tuple[str, ...]
    converged: bool


@cache
def points(ref: str) -> tuple[dict[str, Array], Array]:
    """The design's columns, and the law's own values there on its scale."""
    law = laws.fittable(ref)
    assert law.published
    table = DESIGNS[ref].points()
    columns = {name: table[name].to_numpy(float) for name in table}
    return columns, law.on_scale(law.predict(law.published, columns))


def trial(ref: str, seed: int, bootstrap: int = 200) -> Trial:
    """Simulate ``ref`` at its design with the noise of ``seed``, fit it, compare with the truth."""
    law, design = laws.fittable(ref), DESIGNS[ref]
    columns, truth = points(ref)
    rng = np.random.default_rng(seed)
    observed, new = (truth + design.noise * rng.standard_normal(len(truth)) for _ in range(2))
    response = np.exp(observed) if law.log_response else observed
    table = pd.DataFrame(columns).assign(source="simulated", **{law.response.name: response})
    entry = Fit(
        name="recovery",
        law=ref,
        mapping={},
        units=dict.fromkeys((*columns, law.response.name), "1"),  # they are meant as they are
        bootstrap=bootstrap,
        resample_by=ROWS,  # each point's noise is its own
        level=LEVEL,
        protocol={} if design.starts is None else {"sample": design.starts},
    )
    report = fit(law, table, entry, seed=seed)
    (part,) = report.parts
    assert report.draws is not None
    draws = report.draws[list(law.names)].to_numpy(float)
    prediction = predict(law, part, draws, columns, LEVEL)
    low = {name: -math.inf if p.low is None else p.low for name, p in part.params.items()}
    high = {name: math.inf if p.high is None else p.high for name, p in part.params.items()}
    return Trial(
        mean=_share(law, prediction.low, truth, prediction.high),
        new=_share(law, prediction.new_low, new, prediction.new_high),
        holds={n: bool(low[n] <= x <= high[n]) for n, x in (law.published or {}).items()},
        low=low,
        high=high,
        bound=tuple(p.name for p in law.parameters if _reaches(low[p.name], high[p.name], p)),
        converged=part.converged,
    )


def _share(law: FittableLaw, low: Array, value: Array, high: Array) -> float:
    return float(np.mean((law.on_scale(low) <= value) & (value <= law.on_scale(high))))


def _reaches(low: float, high: float, parameter: Any) -> bool:
    near = [1e-6 * abs(x) for x in (parameter.low, parameter.high)]
    return bool(low <= parameter.low + near[0] or high >= parameter.high - near[1])


def summary(ref: str, trials: list[Trial]) -> dict[str, Any]:
    """Coverage over the trials, each with its standard error.

    The points of one table share its noise: a coverage's error is that of the mean over tables.
    A parameter is called identifiable where hardly an interval (5 %) reaches its bounds and the
    median one spans no more than a factor of 100, or for exponents and the like, which may be
    negative, than twice the parameter.
    """
    law, design = laws.fittable(ref), DESIGNS[ref]
    n_points, n = len(points(ref)[1]), len(trials)
    parameters = {}
    for p in law.parameters:
        name, value = p.name, (law.published or {})[p.name]
        share = float(np.mean([t.holds[name] for t in trials]))
        at_bound = float(np.mean([name in t.bound for t in trials]))
        low, high = (np.median([getattr(t, k)[name] for t in trials]) for k in ("low", "high"))
        narrow = high < 100 * low if p.scale == "log" else high - low < 2 * abs(value)
        parameters[name] = {
            "truth": value,
            "coverage": share,
            "se": float(np.sqrt(share * (1 - share) / n)),
            "median_interval": finite([float(low), float(high)]),
            "at_bound": at_bound,
            "identifiable": bool(at_bound <= 0.05 and narrow),
        }
    return {
        "law": ref,
        "design": design.source,
        "points": n_points,
        "noise": design.noise,
        "starts": design.starts or law.protocol.n_starts,
        "seeds": n,
        "level": LEVEL,
        "converged": float(np.mean([t.converged for t in trials])),
        "mean": _coverage([t.mean for t in trials]),
        "new": _coverage([t.new for t in trials]),
        "parameters": parameters,
    }


def _coverage(shares: list[float]) -> dict[str, float]:
    error = float(np.std(shares, ddof=1) / np.sqrt(len(shares))) if len(shares) > 1 else 0.0
    return {"coverage": float(np.mean(shares)), "se": error}


def markdown(summaries: Iterable[dict[str, Any]]) -> str:
    """The summaries as a table; parameters that are not identifiable are in brackets."""
    lines = [
        "| law | points | noise | seeds | mean, % | new, % | parameters, % |",
        "|-|-|-|-|-|-|-|",
    ]
    for law in summaries:
        held = [
            f"{name} {100 * p['coverage']:.0f}"
            if p["identifiable"]
            else f"({name} {100 * p['coverage']:.0f})"
            for name, p in law["parameters"].items()
        ]
        mean, new = (
            f"{100 * law[k]['coverage']:.1f} ± {100 * law[k]['se']:.1f}" for k in ("mean", "new")
        )
        cells = [law["law"], law["points"], law["noise"], law["seeds"], mean, new, ", ".join(held)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--laws", default=",".join(DESIGNS), help="refs, separated by commas")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--bootstrap", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=Path("results/recovery.json"))
    options = parser.parse_args()
    refs = options.laws.split(",")
    if unknown := [ref for ref in refs if ref not in DESIGNS]:
        sys.exit(f"no design for {', '.join(unknown)}; there are {', '.join(DESIGNS)}")
    versions = {name: version(name) for name in ("moelaws", "numpy", "scipy")}
    about = {"python": platform.python_version(), **versions, "bootstrap": options.bootstrap}
    summaries = []
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with (
        ProcessPoolExecutor(options.jobs) as pool,
        Progress(*columns, console=console, disable=not console.is_terminal) as bars,
    ):
        for ref in refs:
            futures = [
                pool.submit(trial, ref, seed, options.bootstrap) for seed in range(options.seeds)
            ]
            done = bars.track(as_completed(futures), len(futures), description=ref)
            summaries.append(summary(ref, [future.result() for future in done]))
            # After each law: hours of work are not lost with the last one.
            write_json(options.out, {"versions": about, "laws": summaries})
            write_text(options.out.with_suffix(".md"), markdown(summaries))
            print(markdown(summaries[-1:]).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
