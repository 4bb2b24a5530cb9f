"""Tables of the sparsity study's runs in docs/evidence from laws of our choice.

Losses have the noise of the workstation's seeds, 0.019 nats, and follow laws that are not those of
the nulls that the rules compute. Scores follow the regression of the real ones, with a shift by
sparsity; their noise is the residuals of that regression, times a normal number for each run, or
for each width.
"""

from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
from moelaws.fitting.fit import fit
from moelaws.fitting.model_selection import akaike_weights
from moelaws.fitting.report import write_fit
from moelaws.spec.project import load_study
from moelaws.studies.sparsity.derived import scores
from moelaws.studies.sparsity.derived.surface import Surface, averaged
from moelaws.studies.sparsity.derived.trends import beside_nulls, derive
from moelaws.studies.sparsity.laws.isoflop import VARIANTS
from nulls.trial import Trial, null, seen
from repository import REPOSITORY

RUNS = pd.read_parquet(REPOSITORY / "docs/evidence/sparsity.parquet")
NOISE = 0.019  # nats, between seeds
STUDY = load_study("sparsity", REPOSITORY)
ARITHMETIC = (
    "total_size_rises_with_sparsity", "sparsity_rises_with_size", "sparsity_falls_with_budget",
)  # fmt: skip
NEEDS_NO_SPARSITY = "active_size_rises_with_budget"
TRENDS = [claim.name for claim in STUDY.claims if claim.derived == ("trends",)]
FLOPS = (RUNS["C_sparsity"] / RUNS["D"]).to_numpy(float)  # a token


def chinchilla():
    """Losses by the least-squares fit of a law of FLOPs per token and tokens to the runs."""
    size, data = FLOPS / 6e5, RUNS["D"].to_numpy(float) / 3e6
    return 1.769 + 0.5455 * size**-0.712 + 0.6117 * data**-0.497


def one_best_size():
    """Losses by parabolas with the runs' curvature and one vertex at all budgets."""
    level = RUNS["C"].map({1e12: 3.1, 3e12: 2.7, 1e13: 2.4}).to_numpy(float)
    return level + 0.2 * np.log(FLOPS / 9.5e5) ** 2


def published():
    """Losses by the published Eq 6 of 6,000 times the sizes and tokens."""
    law, large = laws.get("sparsity.loss"), 6e3
    columns = {"N": large * RUNS["N_total"], "D": large * RUNS["D"], "S": RUNS["S"]}
    return law.predict(law.published, columns)


def fitted(L, size, seed):
    budgets = list(RUNS.assign(L=L).groupby("C"))
    groups = [({"N": own[size], "S": own["S"]}, own["L"]) for _, own in budgets]
    weights = akaike_weights(VARIANTS, groups)
    for i, (C, rows) in enumerate(budgets):
        yield Surface(C, size, tuple(averaged(weights, rows, size, seed + i, 300)), 0.9, rows)


def slopes(L, seed=0):
    """The table ``trends`` of the workstation's runs with losses ``L``."""
    total, active = (list(fitted(L, size, seed)) for size in ("N_total", "N_active"))
    return derive.frame(beside_nulls(total, active, 0.9))


def noisy(law, seed):
    return law() + np.random.default_rng(seed).normal(0, NOISE, len(RUNS))


@cache
def trends(seed, law):
    table = slopes(noisy(law, seed), 10 * seed)
    return SimpleNamespace(derived={"trends": table}.get)


def both_laws(seed):
    """Eq 6 and Chinchilla's law, fitted from a few starts to losses of the latter."""
    frame, fits = RUNS.assign(L=noisy(chinchilla, seed)), {}
    for name in ("loss", "chinchilla"):
        update = {"bootstrap": 1, "protocol": {"sample": 10}}
        spec = STUDY.at_tier("workstation").fit(name).model_copy(update=update)
        fits[name] = Path(f"{name}.json")
        write_fit(fit(laws.fittable(spec.law), frame, spec), fits[name])
    return FittedInputs(frame=frame, fits=fits)


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
    null(
        tuple(name for name in TRENDS if name != NEEDS_NO_SPARSITY),
        partial(trends, law=chinchilla),
    ),
    null(NEEDS_NO_SPARSITY, partial(trends, law=one_best_size)),
    seen("loss_falls_with_sparsity", partial(trends, law=published), 80),
    null(ARITHMETIC, partial(trends, law=published)),  # weaker than the null's
    Trial(("eq_6_predicts_the_sparsest",), both_laws, (0, 1), tables=10),
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
]
