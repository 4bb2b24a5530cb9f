"""What figures of the published runs draw beside these: Eq 1 as fitted, and gains by routing."""

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.predictions import curve
from moelaws.studies.routing.routers import CUTOFF, DENSE, ROUTERS

FITS = {router.name: router.fit for router in ROUTERS}
SHOWN = (2, 8, 32, 128, 512)  # numbers of experts whose gains are drawn
LARGEST = 2e13  # base parameters, where the axis of gains ends
BELOW = -0.03  # nats/token, below the line of no gain: where a second interval has room
SIZES = ("25M", "370M")  # the columns of architectures
# The rows of architectures: what varies, and the fit.
ROWS = (("k", "s_base_all"), ("routing_frequency", "s_base_all"), ("routing_frequency", "hash_all"))
# The fraction of routed layers in words; 25M models have 8 layers, 370M ones 12. A smaller fraction
# is one layer.
FRACTIONS = {0.25: "a quarter", 0.5: "half", 1.0: "all"}


def dense_law(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the power law of the dense runs over base and effective sizes ``N``."""
    least, largest = inputs.rows("dense")["N_dense"].min(), inputs.derived("gains")["N_effective"]
    N = np.geomspace(least / 1.3, largest.max() * 1.3, 80)
    law = curve(inputs, "dense", N=N)
    return pd.DataFrame({"N": N, "L": law.value, "low": law.low, "high": law.high})


def over_experts(inputs: FittedInputs) -> Rows:
    """Yields Eq 1 over experts for each base size and router, and the dense model's loss."""
    dense = inputs.rows("dense").groupby("size")[["N_dense", "L"]].mean().sort_values("N_dense")
    E = np.geomspace(1, 512, 80)
    for size, N, L in dense.itertuples():
        yield pd.DataFrame({"size": size, "router": DENSE, "E": E[[0, -1]], "L": L})
        for router, fit in FITS.items():
            loss = inputs.predict(fit, N_active=N, E=E)
            yield pd.DataFrame({"size": size, "router": router, "E": E, "L": loss})


def architectures(inputs: FittedInputs) -> Rows:
    """Yields runs by k and by the fraction of routed layers, with their fitted ``law``."""
    for column, fit in ROWS:
        runs = inputs.rows(fit).sort_values(["size", column, "E"])
        fixed = runs["routing_frequency"] == 0.5 if column == "k" else runs["k"] == 1
        runs = runs[fixed & runs["E"].isin([8, 64, 256]) & runs["size"].isin(SIZES)]
        words = [f"{x:g}" if column == "k" else FRACTIONS.get(x, "one") for x in runs[column]]
        law = inputs.predict(fit, N_active=runs["N_active_nonemb"], E=runs["utilisation"])
        what = "active experts" if column == "k" else "routed layers"
        about = runs["router"] + ", " + runs["size"] + f": {what}"
        yield runs.assign(architecture=words, law=law, panel=about)


def gain_lines(inputs: FittedInputs) -> Rows:
    """Yields what routing saves by Eq 1 over base sizes, of the runs and ``beyond``."""
    for router, fit in FITS.items():
        sizes = inputs.derived("gains", router=router)["N_dense"]
        parts = ((False, sizes.min(), sizes.max()), (True, sizes.max(), LARGEST))
        for beyond, low, high in parts:
            N = np.geomspace(low, high, 60)
            dense = inputs.predict(fit, N_active=N, E=1)
            about = {"router": router, "beyond": beyond, "N_dense": N}
            for E in SHOWN:
                gain = dense - inputs.predict(fit, N_active=N, E=E)
                yield pd.DataFrame({**about, "E": E, "gain": gain})


def gains(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the measured gains of the numbers of experts whose lines are drawn."""
    rows = inputs.derived("gains")
    return rows.loc[rows["E"].isin(SHOWN)]


def cutoffs(inputs: FittedInputs) -> Rows:
    """Yields the size at which routing stops helping: intervals, estimate, and as stated."""
    fitted = inputs.derived("cutoffs", objective="squared").set_index("router")
    by_sizes = inputs.derived("sizes", quantity=CUTOFF).set_index("router")
    columns = (
        ("residuals", fitted[["low", "high"]], 0.0),
        ("sizes", by_sizes[["low", "high"]], BELOW),
        ("estimate", fitted[["log10_N"]], 0.0),
        ("stated", fitted[["stated"]], 0.0),
    )
    for what, numbers, gain in columns:
        ends = numbers.clip(0, np.log10(LARGEST)).melt(value_name="end", ignore_index=False)
        yield ends.assign(N=10 ** ends["end"], what=what, gain=gain).reset_index()
