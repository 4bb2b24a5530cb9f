"""Tables of the generalization study at tier paper, from laws that experts do not change."""

from functools import cache, partial
from pathlib import Path

from moelaws.analysis.fitted import FittedInputs
from moelaws.fitting.fit import fit
from moelaws.fitting.report import write_fit
from moelaws.grids.sweep import expand_study
from moelaws.laws.joint import loss as joint
from moelaws.spec.project import Project, load_study
from moelaws.tables.simulate import design, simulate
from nulls.trial import Trial
from repository import REPOSITORY

STUDY = load_study("generalization", REPOSITORY)
# Exponents that no number of experts changes; and a best ratio that none does
ALIKE = {"gamma": 0.0, "zeta": 0.0}
FLAT = {**ALIKE, "omega": joint.LAW.published["delta"]}


@cache
def runs():
    sweep = expand_study(STUDY, Project(tier="paper", source="simulated"), REPOSITORY)
    return design(sweep, sweeps=STUDY.simulation.sweeps)


def made(seed, changes):
    """The joint law fitted to losses of the published one with ``changes``."""
    params, entry = {**joint.LAW.published, **changes}, STUDY.simulation
    known = {"mapping": entry.mapping, "noise": entry.noise, "seed": seed}
    table = simulate(runs(), joint.LAW, params, **known)
    quick = {"bootstrap": 60, "protocol": {"sample": 5}}
    path = Path("joint.json")
    write_fit(fit(joint.LAW, table.frame, STUDY.fit("joint").model_copy(update=quick)), path)
    return FittedInputs(frame=table.frame, fits={"joint": path})


# Of 20 tables with a chance of 1 in 20, more than 3 have it once in 60.
TRIALS = [
    Trial(("kappa_grows", "ratio_rises"), partial(made, changes={}), (5, 6), tables=6),
    Trial(("kappa_grows",), partial(made, changes=ALIKE), (0, 3), tables=20),
    Trial(("ratio_rises",), partial(made, changes=FLAT), (0, 3), tables=20),
]
