"""Ladders of a learning rate whose best value stays, or falls with the size, at the grid's runs."""

from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pandas as pd

from hyperparameters_case import TEXT
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.regression import of_mean
from moelaws.grids.expand import expand
from moelaws.spec.project import load_study
from moelaws.studies.transfer.derived import optima
from moelaws.tables.describe import describe
from nulls.trial import edge, null, seen
from repository import REPOSITORY

STUDY = load_study("transfer", REPOSITORY)
LADDERS = STUDY.derived_table("optima").arguments
# By the published runs: seeds' spread, curvature over ln lr, best rate, gain an e-fold of width
NOISE, CURVATURE, BEST, GAIN = 0.028, 0.165, 0.0094, 0.27
SIZES = {"d_model": 32, "n_layers": 3, "E": 8}  # column -> that of the base
TOKENS = 512_000


GRID = tuple(expand(STUDY.grids["workstation"], TEXT, "transfer.yaml"))


@cache
def runs():
    """The workstation's grid, a row a run."""
    return pd.DataFrame([{**describe(run), "status": "completed"} for run in GRID])


def losses(seed, transfer=0.0, alone=1.0, gain=GAIN, noise=NOISE, tokens=0.32):
    """The runs with losses; the best rate falls as the size to the power of each rule's number."""
    rng, frame = np.random.default_rng(seed), runs().assign(source="simulated")
    growth = sum(np.log(frame[name] / base) for name, base in SIZES.items())
    falls = np.where(frame["sweep"].str.endswith("_alone"), alone, transfer)
    away = np.log(frame["lr"] / BEST) + falls * growth + tokens * np.log(frame["D"] / TOKENS)
    wider = np.log(frame["d_model"] / SIZES["d_model"])
    L = 3.7 - gain * wider + CURVATURE * away**2 + rng.normal(0, noise, len(frame))
    return frame.assign(L=L)


def made(seed, ratio=1.0, level=0.05, **truth):
    """What rules read of such losses; the widest model takes ``ratio`` of the base's steps."""
    table = optima(Inputs(frame=losses(seed, **truth)), **LADDERS)
    # No training has histories here: the ratio has the spread ``level`` between two seeds.
    drawn = np.random.default_rng(seed).normal(np.log(ratio), level, 2)
    steps = of_mean(drawn).map(np.exp)
    cells = dict(zip(("later", "later_low", "later_high"), steps.interval, strict=True))
    return SimpleNamespace(derived={"optima": table.assign(**cells)}.get)


DRIFTS = ("width_transfers", "width_transfers_under_muon", "depth_transfers", "experts_transfer")
CHEAP, ALONE = "the_base_rate_costs_little", "one_rate_drifts"
WIDER, LATER = "wider_is_better", "no_width_learns_later"
TOKENS_TOO = "the_rate_falls_with_tokens"
TRIALS = [
    null((*DRIFTS, CHEAP), partial(made, transfer=1.0)),
    null((*DRIFTS[:2], CHEAP), partial(made, transfer=0.5)),
    null(ALONE, partial(made, alone=0.0)),
    null(ALONE, partial(made, alone=0.5)),
    edge(WIDER, partial(made, gain=0.0)),
    edge(LATER, partial(made, ratio=1.5)),
    edge(LATER, partial(made, ratio=1 / 1.5)),
    null(LATER, partial(made, ratio=2.0)),
    seen((*DRIFTS, ALONE, WIDER, LATER), made, 90),
    seen(CHEAP, made, 50),
    null(TOKENS_TOO, partial(made, tokens=0.0)),
    edge(TOKENS_TOO, partial(made, tokens=0.22)),
    edge(TOKENS_TOO, partial(made, tokens=0.42)),
    seen(TOKENS_TOO, made, 70),
]
