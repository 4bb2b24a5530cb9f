"""Tables of the shipped runs of routing_choices, with losses of our choice and the runs' own noise.

Losses fall with the budget as AdamW's do, and each rate costs what it cost the first seed. Runs of
a block share an error of 0.7 %. A run of a router errs beside it as the differences between routers
do, and a run of Muon or on shuffled text as its differences from the base do.
"""

from functools import cache, partial

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.spec.model import Model
from moelaws.studies.routing_choices.arms import BASE, BEST, BLOCK, MUON, SHUFFLED, Arms
from nulls.trial import edge, null, seen
from repository import REPOSITORY

READ = {
    "run_id", "status", "source", "sweep", "C", "C_sparsity", "k", "E", "d_expert", "seed", "lr",
    "steps", "L", "n_seeds", "L_seed_sd", "trunk", "optimizer", "shuffle", "gate", "balance",
    *Model.model_fields,
}  # fmt: skip
BETWEEN_BLOCKS = 0.7  # percent
BIAS, SIGMOID = "loss_free_balance_is_no_worse", "sigmoid_is_no_worse"
FLOPS, ORDER = "muon_needs_fewer_flops", "law_tells_text_from_shuffled_text"
MARGIN = 100 * np.log(1.005)


@cache
def runs():
    """The shipped runs, as simulated ones, whose losses by document no rule looks for."""
    shipped = pd.read_parquet(REPOSITORY / "docs/evidence/routing_choices.parquet")
    slim = shipped[[name for name in shipped if name in READ]].astype({"run_id": object})
    return slim.assign(source="simulated")


@cache
def known():
    """What 100 ln L is of each run without noise and effects, and how the runs err, in percent."""
    rows, arms = runs(), Arms(Inputs(frame=runs()))
    y, of_text = 100 * np.log(rows["L"]), rows["shuffle"] != "tokens"
    first = y[(rows["seed"] == 0) & (rows["k"] == 2) & of_text & (rows["balance"] == "loss")]
    of_rate = [rows[name] for name in ("optimizer", "C", "lr")]
    cost = first - first.groupby([rows["optimizer"], rows["C"]]).transform("min")
    rate = rows[["optimizer", "C", "lr"]].apply(tuple, axis=1).map(cost.groupby(of_rate).first())
    mean = arms.slope(BEST[BASE]) * np.log(rows["C"]) + rate
    own = np.full(len(rows), arms.spread.sd)
    for arm, chosen in ((MUON, rows["optimizer"] == "muon"), (SHUFFLED, ~of_text)):
        own[chosen] = np.sqrt(2 * arms.noise(arm).sd ** 2 - arms.spread.sd**2)
    return mean, own, rows.groupby(BLOCK).ngroup().to_numpy()


@cache
def fall():
    """The slope of 100 ln L over ln C on text, at the rates of the shuffled runs, without noise."""
    return Arms(Inputs(frame=runs().assign(L=np.exp(known()[0] / 100)))).slope(BASE)


def made(seed, alike=0.0, flatter=0.0, **percent):
    """The runs, where a choice changes the loss by so many ``percent``.

    On shuffled text the slope over compute is ``flatter`` by this share of it. An arm errs
    ``alike``, in percent, at all numbers of experts of one seed.
    """
    rows, rng = runs(), np.random.default_rng(seed)
    mean, own, block = known()
    chosen = {
        "muon": rows["optimizer"] == "muon",
        "bias": rows["balance"] == "bias",
        "sigmoid": rows["gate"] == "sigmoid",
    }
    y = mean + BETWEEN_BLOCKS * rng.standard_normal(block.max() + 1)[block]
    y = y + own * rng.standard_normal(len(rows))
    for name, by in percent.items():
        y = y + by * chosen[name]
    for name in ("bias", "sigmoid"):
        y = y + alike * rng.standard_normal(3)[rows["seed"]] * chosen[name]
    y = y - flatter * fall() * np.log(rows["C"]) * (rows["shuffle"] == "tokens")
    return rows.assign(L=np.exp((y - y.min()) / 100 + 1))


# Losses that an arm shares with no block at the margin; the optimizers and texts as the nulls say.
TRIALS = [
    edge((BIAS, SIGMOID), partial(made, bias=MARGIN, sigmoid=MARGIN)),
    edge(FLOPS, made),
    edge(ORDER, partial(made, flatter=0.5)),
    null(ORDER, made, 20),
    *(seen(claim, made, 60, 100) for claim in (BIAS, SIGMOID)),
    seen(FLOPS, partial(made, muon=-3.0), 70),
    seen(ORDER, partial(made, flatter=0.94), 90),
]
