"""How often rules support claims on simulated tables, with their effects there and without them.

A verdict is a promise: this says how often it is kept. Each table has the runs of the study and the
spread of their losses between seeds. With the effect, the losses are those of the study's law
fitted to the runs, and those of the published law, which a straight line brings to the scale of
the runs. Without the effect they are those of a law that does not know of it, fitted to the runs
as well. A law whose losses such runs could not have says nothing of their rules, and is left out.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.contrasts import seed_sd
from moelaws.analysis.inputs import completed, having, row_mask
from moelaws.analysis.remake import inputs_of, remake, with_starts
from moelaws.claims.base import EFFECT, FITTED, NULL, PUBLISHED, Counts, Tried, Verdict
from moelaws.claims.judge import judged
from moelaws.files.layout import Results
from moelaws.files.trials import trial
from moelaws.fitting.fit import fit
from moelaws.laws.base import Array
from moelaws.laws.mapping import sources
from moelaws.spec.errors import located
from moelaws.spec.fit import Fit
from moelaws.spec.readers import Claim
from moelaws.spec.study import Null, Simulation, Study
from moelaws.tables.parquet import write_table
from moelaws.tables.schema import SIMULATED_COLUMNS
from moelaws.tables.simulate import DEFAULT_MAPPING, simulate, standard_noise
from moelaws.tables.sweeps import in_sweep

SAMPLE = 32  # starts of a fit whose law has more; of Eq 6, one in ten reaches the optimum


@dataclass(frozen=True)
class _Truth:
    """A law that gives the losses of runs, and the claims whose rules are tried on them."""

    key: str  # fitted, published, effect or null
    law: str
    claims: Sequence[Claim]
    runs: pd.DataFrame  # a study's table of the runs, with the law's losses before any noise
    measured: Array  # (n,) the runs' own losses, nats/token

    def losses(self) -> tuple[float, float]:
        """Returns the least and the largest of the law's losses."""
        return float(self.runs["L"].min()), float(self.runs["L"].max())

    def beyond_runs(self) -> str:
        """Returns why such runs could not have these losses; empty if they could."""
        low, high = self.measured.min(), self.measured.max()
        least, largest = self.losses()
        if max(low - least, largest - high) <= (high - low) / 2:
            return ""
        return (
            f"by {self.law} these runs would have losses of {least:.3g} to {largest:.3g} "
            f"nats/token, and they have {low:.3g} to {high:.3g}"
        )

    def with_losses(self, losses: Array) -> "_Truth":
        return replace(self, runs=self.runs.assign(L=losses))


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
            truth.key: [*truth.losses()] for truth in truths if truth.key in (FITTED, PUBLISHED)
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
            if law.published is not None:
                printed = _truth(PUBLISHED, entry, [(chosen, law.published)], chosen, claims)
                line = np.polynomial.Polynomial.fit(printed.runs["L"], chosen["L"], 1)
                yield printed.with_losses(line(printed.runs["L"].to_numpy()))
    for null in study.nulls:
        claims = [claim for claim in study.claims if claim.null_model == null.name]
        if null.law and claims:
            truth = _truth(NULL, null, _fitted(null, runs), runs, claims)
            losses = truth.runs["L"].to_numpy()
            yield truth.with_losses(losses * _factors(null.factors, runs))
            if null.effect is not None:
                changed = truth.with_losses(losses * _factors(null.effect, runs))
                yield replace(changed, key=EFFECT)


def _truth(
    key: str,
    entry: Null | Simulation,
    parts: Iterable[tuple[pd.DataFrame, Mapping[str, float]]],
    runs: pd.DataFrame,
    claims: Sequence[Claim],
) -> _Truth:
    """Returns the losses by the entry's law, whose coefficients differ between ``parts``."""
    law = laws.fittable(entry.law)
    frames = [
        simulate(
            rows.assign(_configuration=rows["run_id"]),
            law,
            params,
            mapping=entry.mapping,
            noise=0.0,
        ).frame
        for rows, params in parts
    ]
    frame = pd.concat(frames).loc[runs.index]
    frame = frame.assign(n_seeds=runs["n_seeds"], L_seed_sd=runs["L_seed_sd"])
    names = [column.name for column in SIMULATED_COLUMNS]
    return _Truth(key, law.ref, claims, frame[names], runs["L"].to_numpy(float))


def _factors(factors: Mapping[str, float], runs: pd.DataFrame) -> Array:
    """Returns by what a law's losses of the runs (n,) are multiplied."""
    product = np.ones(len(runs))
    for rows, factor in factors.items():
        product[row_mask(runs, rows)] *= factor
    return product


def _fitted(
    entry: Null | Simulation, runs: pd.DataFrame
) -> list[tuple[pd.DataFrame, dict[str, float]]]:
    """Returns the rows of each fit of the entry's law to the runs, with its coefficients."""
    law, mapping = laws.fittable(entry.law), DEFAULT_MAPPING | entry.mapping
    # Runs may be tiny, a null may take a width for a size, and a published law may give losses of
    # twenty nats far from its runs: the columns are in their own units.
    units = dict.fromkeys(sources(law, mapping, runs.columns.tolist()).columns, "1")
    split = entry.split_by if isinstance(entry, Null) else ""
    spec = Fit(name="trial", law=law.ref, mapping=mapping, units=units, bootstrap=1, split_by=split)
    with located(f"the trial of the rules by {law.ref}"):
        parts = fit(law, runs, with_starts(spec, SAMPLE)).parts
    return [(having(runs, **part.where), part.estimates()) for part in parts]


def _verdicts(
    study: Study, tier: str, truth: _Truth, noise: float, seed: int
) -> Iterator[tuple[str, str]]:
    """Yields the verdicts of the rules on one table of simulated losses."""
    L = truth.runs["L"] * np.exp(noise * standard_noise(truth.runs, seed))
    frame = truth.runs.assign(L=L, L_se=noise * L)
    with tempfile.TemporaryDirectory() as root:
        folder = Results(Path(root)).tier(tier, simulated=True)
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
