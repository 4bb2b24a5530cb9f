"""How often rules support claims on simulated tables, with their effects there and without them.

A verdict is a promise: this says how often it is kept. Each table has the runs of the study and the
spread of their losses between seeds. With the effect, the losses are those of the study's law
fitted to the runs, and those of the published law, which a straight line brings to the scale of
the runs. Without the effect they are those of a law that does not know of it, fitted to the runs
as well. A law whose losses such runs could not have says nothing of their rules, and is left out.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.contrasts import seed_sd
from moelaws.analysis.inputs import completed, row_mask
from moelaws.analysis.remake import inputs_of, remake, with_starts
from moelaws.claims.base import EFFECT, FITTED, NULL, PUBLISHED, Counts, Tried, Verdict
from moelaws.claims.judge import judged
from moelaws.files.layout import Results, TierFolder
from moelaws.files.trials import trial
from moelaws.fitting.fit import fit
from moelaws.laws.base import Array
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

    key: str  # fitted, published, effect or null
    law: str
    params: Mapping[str, float]
    mapping: Mapping[str, str]
    runs: pd.DataFrame
    claims: Sequence[Claim]
    losses: Array  # (n,) of the runs before noise, nats/token

    def beyond_runs(self) -> str:
        """Returns why such runs could not have these losses; empty if they could."""
        low, high = self.runs["L"].min(), self.runs["L"].max()
        least, largest = self.losses.min(), self.losses.max()
        if max(low - least, largest - high) <= (high - low) / 2:
            return ""
        return (
            f"by {self.law} these runs would have losses of {least:.3g} to {largest:.3g} "
            f"nats/token, and they have {low:.3g} to {high:.3g}"
        )


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
    truths, refused = [], []
    for truth in _truths(simulated, runs):
        why = truth.beyond_runs()
        refused.append(why) if why else truths.append(truth)
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
        "losses": {
            truth.key: [float(truth.losses.min()), float(truth.losses.max())]
            for truth in truths
            if truth.key in (FITTED, PUBLISHED)
        },
        "refused": refused,
        "claims": counts,
        "trial": trial(study, tier),
        "made_of": dict(made_of),
    }


def _truths(study: Study, runs: pd.DataFrame) -> Iterator[_Truth]:
    """Yields the study's law with all claims that have a null, and each null with its own.

    The law comes twice, fitted to the runs and as published. A null that states an effect comes
    twice, with it and without.
    """
    if entry := study.simulation:
        chosen = runs[row_mask(runs, entry.rows)]
        if entry.sweeps:
            chosen = chosen[np.any([in_sweep(chosen, sweep) for sweep in entry.sweeps], axis=0)]
        claims = [claim for claim in study.claims if claim.null_model]
        law = laws.fittable(entry.law)
        if len(chosen):
            yield _truth(FITTED, entry, _fitted(entry, chosen), chosen, claims)
        if law.published is not None and len(chosen):
            printed = _truth(PUBLISHED, entry, dict(law.published), chosen, claims)
            line = np.polynomial.Polynomial.fit(printed.losses, chosen["L"], 1)
            yield replace(printed, losses=line(printed.losses))
    for null in study.nulls:
        claims = [claim for claim in study.claims if claim.null_model == null.name]
        if null.law and claims:
            truth = _truth(NULL, null, _fitted(null, runs), runs, claims)
            yield replace(truth, losses=truth.losses * _factors(null.factors, runs))
            if null.effect is not None:
                losses = truth.losses * _factors(null.effect, runs)
                yield replace(truth, key=EFFECT, losses=losses)


def _truth(
    key: str,
    entry: Null | Simulation,
    params: Mapping[str, float],
    runs: pd.DataFrame,
    claims: Sequence[Claim],
) -> _Truth:
    law = laws.fittable(entry.law)
    known = simulate(_named(runs), law, params, mapping=entry.mapping, noise=0.0)
    losses = known.frame["L"].to_numpy(float)
    return _Truth(key, law.ref, params, entry.mapping, runs, claims, losses)


def _factors(factors: Mapping[str, float], runs: pd.DataFrame) -> Array:
    """Returns by what a law's losses of the runs (n,) are multiplied."""
    product = np.ones(len(runs))
    for rows, factor in factors.items():
        product[row_mask(runs, rows)] *= factor
    return product


def _fitted(entry: Null | Simulation, runs: pd.DataFrame) -> dict[str, float]:
    """Returns the coefficients of the entry's law, fitted to the runs."""
    law, mapping = laws.fittable(entry.law), DEFAULT_MAPPING | entry.mapping
    # Runs may be tiny, a null may take a width for a size, and a published law may give losses of
    # twenty nats far from its runs: the columns are in their own units.
    units = {variable.name: "1" for variable in (*law.variables, law.response)}
    spec = Fit(name="trial", law=law.ref, mapping=mapping, units=units, bootstrap=1)
    with located(f"the trial of the rules by {law.ref}"):
        return fit(law, runs, with_starts(spec, SAMPLE)).parts[0].estimates()


def _named(runs: pd.DataFrame) -> pd.DataFrame:
    return runs.assign(_configuration=runs["run_id"])


def _verdicts(
    study: Study, tier: str, truth: _Truth, noise: float, seed: int
) -> Iterator[tuple[str, str]]:
    """Yields the verdicts of the rules on one table of simulated losses."""
    law, runs = laws.fittable(truth.law), _named(truth.runs)
    simulation = simulate(runs, law, truth.params, mapping=truth.mapping, noise=noise, seed=seed)
    moved = simulation.frame["L"] / simulation.frame["L_true"]
    spread = {name: truth.runs[name].to_numpy() for name in ("n_seeds", "L_seed_sd")}
    frame = simulation.frame.assign(L=moved * truth.losses, **spread)
    frame = frame[[column.name for column in SIMULATED_COLUMNS]]
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
