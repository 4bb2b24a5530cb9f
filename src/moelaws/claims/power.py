"""How often rules support claims on simulated tables, with their effects there and without them.

A verdict is a promise: this says how often it is kept. Each table has the runs of the study and the
spread of their losses between seeds. The losses are those of the law that the paper publishes, or
those of a law that does not know the effect and that was fitted to the runs.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.contrasts import seed_sd
from moelaws.analysis.inputs import completed, row_mask
from moelaws.analysis.remake import inputs_of, remake, with_starts
from moelaws.claims.base import EFFECT, NULL, PUBLISHED, Counts, Tried, Verdict
from moelaws.claims.judge import judged
from moelaws.files.layout import Results, TierFolder
from moelaws.files.trials import trial
from moelaws.fitting.fit import fit
from moelaws.spec.errors import located
from moelaws.spec.fit import Fit
from moelaws.spec.readers import Claim
from moelaws.spec.study import Null, Simulation, Study
from moelaws.tables.parquet import write_table
from moelaws.tables.schema import SIMULATED_COLUMNS
from moelaws.tables.simulate import DEFAULT_MAPPING, simulate
from moelaws.tables.sweeps import in_sweep

SAMPLE = 32  # starts of a fit whose law has more; of Eq 6, one in ten reaches the optimum


@dataclass(frozen=True)
class _Truth:
    """A law that gives the losses of runs, and the claims whose rules are tried on them."""

    key: str  # published, effect or null
    law: str
    params: Mapping[str, float]
    mapping: Mapping[str, str]
    runs: pd.DataFrame
    claims: Sequence[Claim]
    factors: Mapping[str, float] = field(default_factory=dict)  # rows -> of the law's losses


def tried(
    study: Study,
    tier: str,
    table: pd.DataFrame,
    tables: int,
    made_of: Mapping[str, Any],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Tried:
    """Tries the rules of the study's claims on simulated ``tables`` of the runs of its ``table``.

    Claims whose rules read what no law gives, such as expert loads, are left out. A table in which
    a rule cannot measure counts as one that cannot tell.
    """
    runs, simulated = completed(table), study.of_simulated()
    fits = tuple(with_starts(entry, SAMPLE) for entry in simulated.fits)
    simulated = simulated.model_copy(update={"fits": fits})
    noise, noise_of = seed_sd(runs) / runs["L"].mean(), "the spread between seeds of such runs"
    if not isfinite(noise):
        noise = (study.simulation or Simulation(law="")).noise
        noise_of = "assumed, since none has a second seed"
    truths = [*_truths(simulated, runs)]
    counts: dict[str, dict[str, Counts]] = {}
    total = len(truths) * tables
    for i, truth in enumerate(truths):
        for seed in range(tables):
            for name, decision in _verdicts(simulated, tier, truth, noise, seed):
                none: Counts = dict.fromkeys(map(str, Verdict), 0)
                counts.setdefault(name, {}).setdefault(truth.key, none)[decision] += 1
            progress(i * tables + seed + 1, total)
    return {
        "study": study.study,
        "tier": tier,
        "tables": tables,
        "noise": noise,
        "noise_of": noise_of,
        "claims": counts,
        "trial": trial(study, tier),
        "made_of": dict(made_of),
    }


def _truths(study: Study, runs: pd.DataFrame) -> Iterator[_Truth]:
    """Yields the published law with all claims that have a null, and each null with its own.

    A null that states an effect comes twice, with it and without.
    """
    if entry := study.simulation:
        law = laws.fittable(entry.law)
        chosen = runs[row_mask(runs, entry.rows)]
        if entry.sweeps:
            chosen = chosen[np.any([in_sweep(chosen, sweep) for sweep in entry.sweeps], axis=0)]
        if law.published is not None and len(chosen):
            known = dict(law.published)
            estimated = [claim for claim in study.claims if claim.null_model]
            yield _Truth(PUBLISHED, law.ref, known, entry.mapping, chosen, estimated)
    for null in study.nulls:
        claims = [claim for claim in study.claims if claim.null_model == null.name]
        if null.law and claims:
            params = _fitted(null, runs)
            truth = _Truth(NULL, null.law, params, null.mapping, runs, claims, null.factors)
            yield truth
            if null.effect is not None:
                yield replace(truth, key=EFFECT, factors=null.effect)


def _fitted(null: Null, runs: pd.DataFrame) -> dict[str, float]:
    """Returns the coefficients of the null's law, fitted to the runs."""
    law, mapping = laws.fittable(null.law), DEFAULT_MAPPING | null.mapping
    # Runs may be tiny, a null may take a width for a size, and a published law may give losses of
    # twenty nats far from its runs: the columns are in their own units.
    units = {variable.name: "1" for variable in (*law.variables, law.response)}
    spec = Fit(name=null.name, law=law.ref, mapping=mapping, units=units, bootstrap=1)
    with located(f"null {null.name}"):
        return fit(law, runs, with_starts(spec, SAMPLE)).parts[0].estimates()


def _verdicts(
    study: Study, tier: str, truth: _Truth, noise: float, seed: int
) -> Iterator[tuple[str, str]]:
    """Yields the verdicts of the rules on one table of simulated losses."""
    law, runs = laws.fittable(truth.law), truth.runs.assign(_configuration=truth.runs["run_id"])
    simulation = simulate(runs, law, truth.params, mapping=truth.mapping, noise=noise, seed=seed)
    for rows, factor in truth.factors.items():
        simulation.frame.loc[row_mask(truth.runs, rows), "L"] *= factor
    spread = {name: truth.runs[name].to_numpy() for name in ("n_seeds", "L_seed_sd")}
    frame = simulation.frame.assign(**spread)[[column.name for column in SIMULATED_COLUMNS]]
    with tempfile.TemporaryDirectory() as root:
        folder: TierFolder = Results(Path(root)).tier(tier, simulated=True)
        about = {"study": study.study, "tier": tier, "simulation": "{}"}
        write_table(frame, SIMULATED_COLUMNS, folder.table(study.study), about)
        names = {name for claim in truth.claims for name in claim.needs}
        each = remake(study, folder, names, lambda name: lambda stage, done, total: None)
        lost = {entry.name for entry, _, reason in each if reason}
        for claim in truth.claims:
            if claim.needs & lost:
                yield claim.name, Verdict.CANNOT_TELL
            else:
                yield claim.name, judged(study, claim, inputs_of(study, claim, folder))["verdict"]
