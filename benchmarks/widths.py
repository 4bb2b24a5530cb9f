"""Why `moelaws plan` does not read coefficients off the draws of `moelaws next`: docs/planning.md.

python benchmarks/widths.py leverage --tier node

For each coefficient of the study's simulated law: the 90 % interval by the draws that `next` takes
of one table of simulated losses, the one that `moelaws plan` prints of the same table, and between
which values lie 90 % of the estimates from tables with other noise. The last is what to expect.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from moelaws import laws
from moelaws.analysis.choice.draws import Known, posterior
from moelaws.fitting.objective import Objective
from moelaws.fitting.problem import follow, problem
from moelaws.fitting.rows import split_rows
from moelaws.grids.sweep import expand_study
from moelaws.laws.protocol import overridden
from moelaws.spec.project import load_project, load_study
from moelaws.tables.simulate import simulated, simulation_entry

TABLES = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study")
    parser.add_argument("--tier", default="node")
    args = parser.parse_args()
    words = ["plan", args.study, "--tier", args.tier, "--json"]
    said = subprocess.run([sys.executable, "-m", "moelaws", *words], stdout=-1, check=True)
    (fit,) = json.loads(said.stdout)["fits"]
    study = load_study(args.study).at_tier(args.tier)
    sweep = expand_study(study, load_project(overrides={"tier": args.tier}))
    simulation, about = simulated(sweep, simulation_entry(study))
    entry = next(own for own in study.fits if own.name == fit["name"])
    law, noise = laws.fittable(about["law"]), about["noise"]
    (rows,) = split_rows(law, simulation.frame, entry, {})
    columns, observed = law.columns(rows.columns), law.on_scale(rows.response)
    n, true = len(observed), law.vector(about["params"])
    known = Known(law, columns, observed, np.zeros(n), open=columns)
    drawn = law.natural(posterior(known, noise, 200, seed=0).draws)
    path = problem(law, rows, overridden(law, entry.protocol, entry.name), 0).path()
    losses = law.model(columns).evaluate(true[None])[0][0]
    losses = losses + noise * np.random.default_rng(0).standard_normal((TABLES, n))
    whole = np.ones((TABLES, n))
    path = [Objective(o.model, losses, o.delta, whole, o.unit) for o in path]
    refits = law.natural(follow(path, np.tile(true, (TABLES, 1)), law.bounds))
    print(f"{'':8} {'true':>10} {'draws of next':>23} {'moelaws plan':>23} {'estimates':>23}")
    for i, name in enumerate(law.names):
        own = fit["parts"][0]["params"][name]
        ends = [np.quantile(x[:, i], [0.05, 0.95]) for x in (drawn, refits)]
        ends.insert(1, [np.nan if own[end] is None else own[end] for end in ("low", "high")])
        print(f"{name:8} {about['params'][name]:10.4g}", *(f"{a:11.4g} {b:11.4g}" for a, b in ends))


if __name__ == "__main__":
    main()
