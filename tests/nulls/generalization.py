"""Tables of the generalization study from laws of our choice.

Trends over the number of experts are tried on the sweep ``experts`` of the tier paper, and all else
on the runs of the tier node, whose losses are a sum of a power of the active parameters, one of the
tokens and a floor. Dimensions are given, so that their claims depend on losses alone.
"""

from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pytest

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs, having
from moelaws.grids.sweep import expand_study
from moelaws.laws.joint import loss as joint
from moelaws.spec.project import Project, load_study
from moelaws.studies.generalization.derived import exponents
from moelaws.studies.generalization.derived.runs import as_counted, routing_slopes
from moelaws.tables.simulate import design, simulate
from moelaws.tables.sweeps import in_sweep
from nulls.trial import edge, fit_of, null, seen
from repository import REPOSITORY
from study_case import filled

STUDY = load_study("generalization", REPOSITORY)
# Exponents that no number of experts changes, and a best ratio that none does
FLAT = {"gamma": 0.0, "zeta": 0.0, "omega": joint.LAW.published["delta"]}
# Starts of the fit of the joint law; from others it comes to the same optimum, but later
PUBLISHED = joint.LAW.vector(joint.LAW.published)[:, None].tolist()
TRUTH = dict(zip(joint.LAW.names, PUBLISHED, strict=True))
DRAWS = 100
FEW_ERRORS = 0.001  # of ln L, that of the mean of ten seeds
SEED_SD = 0.009  # nats, between seeds
DIMENSION = 12.0  # of the hidden states
# Ludziejewski et al.'s, and that of the data which agrees with it by Eq 24
ALPHA_N = 0.1889


def grid(tier, *sweeps):
    sweep = expand_study(STUDY, Project(tier=tier, source="simulated"), REPOSITORY)
    return design(sweep, sweeps=sweeps)


@cache
def experts():
    return grid("paper", "experts")


def of_experts(seed, changes, runs=None):
    """The joint law fitted to losses of the published one with ``changes``."""
    runs = experts() if runs is None else runs
    params, entry = {**joint.LAW.published, **changes}, STUDY.simulation
    known = {"mapping": entry.mapping, "noise": entry.noise, "seed": seed}
    table = simulate(runs, joint.LAW, params, **known)
    quick = {"bootstrap": DRAWS, "protocol": {"grid": TRUTH}}
    path = fit_of(STUDY.fit("joint").model_copy(update=quick), table.frame)
    return FittedInputs(frame=table.frame, fits={"joint": path})


@cache
def counted():
    runs = filled(grid("node", "model", "data", "routing").assign(L=1.0, status="completed"))
    return as_counted(Inputs(frame=runs.assign(corpus="own")))


def powers(seed, alpha_N=ALPHA_N, kappa=1.0, forms=("line", "floor"), runs=None, noise=FEW_ERRORS):
    """Slopes of losses whose data exponent is ``kappa`` times the one that ``alpha_N`` implies."""
    runs, alpha_D = counted() if runs is None else runs, kappa * alpha_N / (1 + alpha_N)
    N, D = runs["N_act"] / 1e7, runs["D"] / 1e8
    L = 1.6 + 1.5 * N**-alpha_N + 1.2 * D**-alpha_D
    L = L * np.exp(noise * np.random.default_rng(seed).standard_normal(len(runs)))
    frame, fits = runs.assign(L=L), {}
    for name in (f"{series}_{form}" for series in ("model", "data") for form in forms):
        spec = STUDY.fit(name).model_copy(update={"bootstrap": 100})
        fits[name] = fit_of(spec, frame[in_sweep(frame, spec.sweep)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exponents, "FLOORS", {form: exponents.FLOORS[form] for form in forms})
        return exponents.slopes(FittedInputs(frame=frame, fits=fits))


def over_powers(seed, **chosen):
    """What the rules on exponents read; the dimension is that of one model's middle layers."""
    tables = {"slopes": powers(seed, **chosen), "dimension": dimensions()}
    return SimpleNamespace(derived=lambda table, /, **cells: having(tables[table], **cells))


@cache
def dimensions():
    deepest = counted().nlargest(1, "n_layers")
    known = {"middle": True, "dimension": DIMENSION, "mad": 0.0, "full": 1.0, "points": 1}
    return deepest.assign(**known, bpb=1.0)


def over_experts(seed, few, many, runs=None):
    """Losses with slopes over ln M below and above the middle M = 16 of each series."""
    runs = counted() if runs is None else runs
    x = np.log(runs["M"] / 16)
    noise = SEED_SD * np.random.default_rng(seed).standard_normal(len(runs))
    frame = runs.assign(L=3 + few * np.minimum(x, 0) + many * np.maximum(x, 0) + noise)
    routed = frame[in_sweep(frame, "routing")]
    table = routing_slopes(SimpleNamespace(derived=lambda name, sweep: routed))
    return SimpleNamespace(frame=frame, derived={"routing": table}.get)


EXPONENTS = "exponent_identity", "dimension_and_exponents"
TRENDS = "kappa_grows", "ratio_rises"
# The smoothness at either end of its range, and both exponents as far apart as they may be
LOW_END = {"alpha_N": 1 / DIMENSION, "kappa": 2.0}
HIGH_END = {"alpha_N": 4 / DIMENSION, "kappa": 0.5}
TRIALS = [
    edge("active_parameters", partial(over_powers, alpha_N=0.0, forms=["line"])),
    *(edge(EXPONENTS, partial(over_powers, **end), 40) for end in (LOW_END, HIGH_END)),
    seen(("active_parameters", *EXPONENTS), over_powers, 36, 40),
    null("routing_regimes", partial(over_experts, few=0.0, many=0.0)),
    edge("routing_regimes", partial(over_experts, few=0.0, many=-0.01)),
    edge("routing_regimes", partial(over_experts, few=0.01, many=0.0)),
    seen("routing_regimes", partial(over_experts, few=0.01, many=-0.01), 50),
    replace(edge(TRENDS, partial(of_experts, changes=FLAT), 20), supported=(0, 3)),
    seen(TRENDS, partial(of_experts, changes={}), 11, 12),
]
