"""Tables of the sparsity study's runs in docs/evidence from laws of our choice.

Losses have the noise of the workstation's seeds, 0.027 nats, and follow laws that are not those of
the nulls that the rules compute. Scores follow the regression of the real ones, with a shift by
sparsity; their noise is the residuals of that regression, times a normal number for each run, or
for each width.
"""

import json
from dataclasses import dataclass, replace
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.contrasts import seed_sd
from moelaws.analysis.fitted import FittedInputs
from moelaws.fitting.fit import fit
from moelaws.fitting.model_selection import akaike_weights
from moelaws.spec.fit import Fit
from moelaws.spec.project import load_study
from moelaws.studies.sparsity.derived import domains, scores
from moelaws.studies.sparsity.derived.surface import Surface, averaged
from moelaws.studies.sparsity.derived.trends import SMALL, beside_nulls, derive
from moelaws.studies.sparsity.laws.isoflop import VARIANTS
from nulls.trial import Trial, fit_of, null, seen
from repository import REPOSITORY

STUDY = load_study("sparsity", REPOSITORY)
TOTAL_SIZE, SMALL_DENSE = "total_size_rises_with_sparsity", "dense_is_best_for_small_models"
ALONE = "sparsity_alone_lowers_the_loss"
RISES, ALIKE = "active_size_rises_with_budget", "loss_falls_alike_at_all_budgets"
OWN_NULL = {TOTAL_SIZE, SMALL_DENSE, RISES, ALIKE}
TRENDS = [claim.name for claim in STUDY.claims if claim.derived == ("trends",)]


@dataclass(frozen=True, eq=False)
class Sweep:
    """Runs whose losses are replaced by those of laws that are fitted to them, with noise."""

    runs: pd.DataFrame
    noise: float  # nats

    @property
    def flops(self):
        """FLOPs a token of each run, (n,)."""
        return (self.runs["C_sparsity"] / self.runs["D"]).to_numpy(float)

    def noisy(self, law, seed):
        return law(self) + np.random.default_rng(seed).normal(0, self.noise, len(self.runs))


RUNS = pd.read_parquet(REPOSITORY / "docs/evidence/sparsity.parquet")
EVIDENCE = Sweep(RUNS, seed_sd(RUNS))


@cache
def chinchilla(sweep):
    """Losses by Chinchilla's law of active parameters, routers among them, fitted to the runs."""
    mapping = {"N": "N_active", "D": "D", "L": "L"}
    spec = Fit(name="null", law="chinchilla", mapping=mapping, bootstrap=1, protocol={"sample": 50})
    law = laws.fittable("chinchilla")
    known = fit(law, sweep.runs, spec).parts[0].estimates()
    return law.predict(known, {"N": sweep.runs["N_active"], "D": sweep.runs["D"]})


@cache
def one_total_size(sweep):
    """Losses by parabolas of each budget in ln N and -ln(1-S), of which N* does not know S."""
    losses = np.empty(len(sweep.runs))
    for _, rows in sweep.runs.groupby("C"):
        u, v = np.log(rows["N_total"].to_numpy()), -np.log1p(-rows["S"].to_numpy())
        u = u - u.mean()
        X = np.column_stack([np.ones_like(u), u, u**2, v, v**2])
        losses[rows.index] = X @ np.linalg.lstsq(X, rows["L"], rcond=None)[0]
    return losses


@cache
def dense_best_to_the_margin(sweep):
    """Losses whose best v is the margin at 0.78 times the best dense size of each budget.

    The dense models have the parabola of the runs' dense models, and v* rises with ln N.
    """
    losses = np.empty(len(sweep.runs))
    for _, rows in sweep.runs.groupby("C"):
        u, v = np.log(rows["N_total"].to_numpy()), -np.log1p(-rows["S"].to_numpy())
        dense = np.polyfit(u[v == 0], rows["L"].to_numpy()[v == 0], 2)
        small = -dense[1] / (2 * dense[0]) + np.log(SMALL)
        best = STUDY.entry("claims", SMALL_DENSE).expect.below + 0.7 * (u - small)
        losses[rows.index] = np.polyval(dense, u) + 0.02 * ((v - best) ** 2 - best**2)
    return losses


def changing(sweep, change):
    """Losses whose slope over v changes by ``change`` of its mean for each e-fold of C.

    Without v they are a parabola of each budget in ln FLOPs a token, fitted to its runs.
    """
    c, v = np.log(sweep.runs["C"]), -np.log1p(-sweep.runs["S"])
    w, level = np.log(sweep.flops), np.empty(len(sweep.runs))
    for _, rows in sweep.runs.groupby("C"):
        own = w[rows.index]
        level[rows.index] = np.polyval(np.polyfit(own, rows["L"], 2), own)
    return np.asarray(level - 0.05 * v * (1 + change * (c - np.log(3e12))))


def one_best_size(sweep):
    """Losses by parabolas with the runs' curvature and one vertex at all budgets."""
    level = sweep.runs["C"].map({1e12: 3.1, 3e12: 2.7, 1e13: 2.4}).to_numpy(float)
    return level + 0.2 * np.log(sweep.flops / 9.5e5) ** 2


@cache
def eq_6(sweep, **changes):
    """Losses by Eq 6 as it was fitted to the runs in docs/evidence, with ``changes``."""
    known = json.loads((REPOSITORY / "docs/evidence/fits/sparsity/loss.json").read_text())["params"]
    columns = {"N": sweep.runs["N_total"], "D": sweep.runs["D"], "S": sweep.runs["S"]}
    params = {name: p["estimate"] for name, p in known.items()} | changes
    return laws.get("sparsity.loss").predict(params, columns)


# Lambda is three times the paper's: sparsity alone lowers the loss by .41 nats from S = 0 to .97,
# where the paper's own coefficients say .20.
sparser_alone = partial(eq_6, c=0.5, e=1.36, **{"lambda": -0.5})


def fitted(sweep, L, size, seed):
    budgets = list(sweep.runs.assign(L=L).groupby("C"))
    groups = [({"N": own[size], "S": own["S"]}, own["L"]) for _, own in budgets]
    weights = akaike_weights(VARIANTS, groups)
    for i, (C, rows) in enumerate(budgets):
        yield Surface(C, size, tuple(averaged(weights, rows, size, seed + i, 300)), 0.9, rows)


def slopes(L, seed=0, sweep=EVIDENCE):
    """The table ``trends`` of the workstation's runs, or of others, with losses ``L``."""
    total, active = (list(fitted(sweep, L, size, seed)) for size in ("N_total", "N_active"))
    return derive.frame(beside_nulls(total, active, 0.9))


@cache
def trends(seed, law):
    table = slopes(EVIDENCE.noisy(law, seed), 10 * seed)
    return SimpleNamespace(derived={"trends": table}.get)


def fits_to(seed, law, names=("loss",), bootstrap=20, **protocol):
    """The study's fits of these names to losses of a law."""
    frame, fits = RUNS.assign(L=EVIDENCE.noisy(law, seed)), {}
    for name in names:
        update = {"bootstrap": bootstrap, "protocol": protocol}
        spec = STUDY.at_tier("workstation").fit(name).model_copy(update=update)
        fits[name] = fit_of(spec, frame)
    return FittedInputs(frame=frame, fits=fits)


# As many draws as the study's own fit has at the demo
alone = partial(fits_to, bootstrap=100, sample=3)
both_laws = partial(
    fits_to, names=("loss", "chinchilla"), bootstrap=1, objective="squared", sample=1
)

EVERY_DOMAIN, OF_TEXT = "sparser_is_better_in_every_domain", 8


def in_domains(seed, indifferent):
    """Bits per byte of a text's domains, in so many of which sparsity changes nothing.

    The others follow Eq 6. A run's noise is common to its domains, and half as much is not.
    """
    rng, n = np.random.default_rng(seed), len(RUNS)
    common = rng.normal(0, EVIDENCE.noise, n)
    level = RUNS["C"].map({1e12: 3.1, 3e12: 2.7, 1e13: 2.4})
    w = np.log(RUNS["N_active"])
    alike = level + 0.2 * (w - w.groupby(RUNS["C"]).transform("mean")) ** 2
    parts = []
    for domain in range(OF_TEXT):
        nats = alike if domain < indifferent else eq_6(EVIDENCE)
        bpb = (nats + common + rng.normal(0, EVIDENCE.noise / 2, n)) * rng.uniform(0.3, 0.6)
        parts.append(RUNS[["C", "S", "N_active", "seed"]].assign(domain=f"{domain}", bpb=bpb))
    table = pd.concat([*parts, parts[-1].assign(domain="all")], ignore_index=True)
    made = domains.slopes(SimpleNamespace(derived={"domains": table}.get))
    return SimpleNamespace(derived={"domain_slopes": made}.get)


READING = "reading comprehension"
EQUAL, READ_WORSE = "sparsity_changes_no_score_at_equal_loss", "sparser_models_read_worse"
SCORES = pd.read_parquet(REPOSITORY / "docs/evidence/scores.parquet").query("by == 'group'")
MARGIN = STUDY.entry("claims", EQUAL).expect.below


def scored(rows, equivalent, rng, by):
    """Bits per byte of a group's ``rows``; the residuals times a normal number for each ``by``."""
    coefficients = scores.regress(rows, "bits_per_byte")[0].copy()
    X = scores.regressors(rows, rows["L"].to_numpy(), rows["S"].to_numpy())
    residuals = rows["bits_per_byte"] - X @ coefficients
    coefficients[3] = equivalent * coefficients[1] / np.ptp(X[:, 3])
    factor = {value: rng.standard_normal() for value in sorted(rows[by].unique())}
    return rows.assign(bits_per_byte=X @ coefficients + residuals * rows[by].map(factor))


def relation(seed, by, **equivalent_of_group):
    rng, drawn = np.random.default_rng(seed), []
    for group, equivalent in equivalent_of_group.items():
        source = "continuation" if group == READING else group
        rows = SCORES[SCORES["skill"] == source].assign(skill=group, group=group)
        drawn.append(scored(rows, equivalent, rng, by))
    downstream = SimpleNamespace(derived={"downstream": pd.concat(drawn)}.get)
    table = pd.DataFrame(scores.relation(downstream))
    return SimpleNamespace(derived={"relation": table}.get)


TRIALS = [
    null(tuple(sorted(set(TRENDS) - OWN_NULL)), partial(trends, law=chinchilla), 20),
    null(TOTAL_SIZE, partial(trends, law=one_total_size), 20),
    null(SMALL_DENSE, partial(trends, law=dense_best_to_the_margin), 20),
    null(RISES, partial(trends, law=one_best_size), 20),
    *(null(ALIKE, partial(trends, law=partial(changing, change=by)), 20) for by in (-0.15, 0.15)),
    Trial(("loss_falls_with_sparsity",), partial(trends, law=eq_6), (16, 20), tables=20),
    Trial(tuple(TRENDS), partial(trends, law=eq_6), (0, 20), tables=20, kind="effect"),
    null(ALONE, partial(alone, law=chinchilla), 20),
    Trial((ALONE,), partial(alone, law=eq_6), (0, 20), tables=20, kind="effect"),
    replace(
        null("eq_6_predicts_the_sparsest", partial(both_laws, law=chinchilla), 20), supported=(0, 2)
    ),
    seen("eq_6_predicts_the_sparsest", partial(both_laws, law=eq_6), 12, 20),
    *(  # a group that is off by the margin
        null(EQUAL, partial(relation, by=by, **{"continuation": 0.0, "syntax": 0.0, off: shift}))
        for by in ("run_id", "d_model")
        for shift in (-MARGIN, MARGIN)
        for off in ("continuation", "syntax")
    ),
    *(
        trial
        for by in ("run_id", "d_model")
        for trial in (
            null(READ_WORSE, partial(relation, by=by, **{READING: 0.0})),
            seen(READ_WORSE, partial(relation, by=by, **{READING: MARGIN}), 90),
        )
    ),
    seen(ALONE, partial(alone, law=sparser_alone), 3, 20),
    *(
        seen(EQUAL, partial(relation, by=by, continuation=0.0, syntax=0.0), 0)
        for by in ("run_id", "d_model")
    ),
    null(EVERY_DOMAIN, partial(in_domains, indifferent=1), 40),
    seen(EVERY_DOMAIN, partial(in_domains, indifferent=0), 18, 20),
]
