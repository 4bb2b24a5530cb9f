"""Skaling: which law it is a form of, and how it extrapolates on public runs beside that law."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.laws.skaling import LAW
from moelaws.spec.fit import Fit
from public_runs import public

CHINCHILLA = laws.get("chinchilla")
PARAMS = {"A": 482.01, "B": 2085.43, "E": 1.8169, "alpha": 0.3478, "beta": 0.3659}


@given(st.floats(6, 12), st.floats(7, 13), st.just(1.0) | st.floats(0.1, 2.0))
def test_the_power_is_of_the_sum(log_N, log_D, k):
    """With none, k = 1, it is Chinchilla's law."""
    at = {"N": 10.0**log_N, "D": 10.0**log_D}
    reducible = CHINCHILLA.predict(PARAMS, at) - PARAMS["E"]
    assert LAW.predict(PARAMS | {"k": k}, at) == pytest.approx(PARAMS["E"] + reducible**k)


@pytest.mark.parametrize(("share", "most"), [(0.5, 0.0065), (0.7, 0.0065), (0.85, 0.0055)])
def test_on_runs_of_others_it_extrapolates_three_times_closer_than_chinchilla(share, most):
    """404 dense runs of Farseer's authors: fitted to the cheaper ones, judged by the dearer."""
    table = pd.read_parquet(public("farseer_train.parquet"))
    table = table.iloc[np.argsort(table["N"] * table["D"], kind="stable")].reset_index(drop=True)
    cut = int(share * len(table))
    off = {}
    for ref in ("skaling", "chinchilla"):
        entry = Fit(name="own", law=ref, mapping={"L": "loss"}, bootstrap=1)
        if ref == "chinchilla":
            entry = entry.model_copy(update={"protocol": {"sample": 200}})
        (part,) = fit(laws.fittable(ref), table[:cut], entry, calibrated=False).parts
        dearer = table[cut:]
        at = {name: dearer[name].to_numpy() for name in ("N", "D")}
        error = laws.get(ref).predict(part.estimates(), at) / dearer["loss"] - 1
        off[ref] = float(error.abs().mean())
    assert off["skaling"] < most
    assert off["chinchilla"] > 3 * off["skaling"]
