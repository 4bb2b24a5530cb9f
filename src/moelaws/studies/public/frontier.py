"""What figures with fits draw: recipes and lines of the best size, the frontier, and epochs."""

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.predictions import curve
from moelaws.laws import deepseek, holistic, marin
from moelaws.laws.leverage import allocation
from moelaws.studies.public.figures import POINTS, optima

SIZES = 4  # the most sizes at one number of unique tokens, evenly chosen
# Recipe in print -> its law
RECIPES = {
    "marin": marin.LAW,
    "leverage": allocation.LAW,
    "holistic": holistic.LAW,
    "deepseek (dense)": deepseek.VARIANTS["allocation"],
}


def recipes(inputs: FittedInputs, groups: list[str]) -> Rows:
    """Returns the best tokens D that recipes in print give over compute, and N where they do."""
    C = np.geomspace(optima(inputs, groups)["C"].min() / 1.5, 2e21, 40)
    given = {recipe: law.evaluate({}, {"C": C}) for recipe, law in RECIPES.items()}
    return (
        pd.DataFrame({"recipe": recipe, "C": C, "N": of.get("N_active", np.nan), "D": of["D"]})
        for recipe, of in given.items()
    )


def lines(inputs: FittedInputs, groups: list[str]) -> Rows:
    """Yields the fitted power laws of N, a sixth of the FLOPs a token, and of D, by group."""
    rows = optima(inputs, groups)
    for fit, name, factor in (("size", "N", 6.0), ("tokens", "D", 1.0)):
        for part in inputs.fit(fit).parts:
            own = rows[rows["group"] == part.where["group"]]
            if len(own):
                value = inputs.law(fit).predict(part.estimates(), {"C": own["C"]})
                yield own.assign(**{name: value / factor})


def frontier(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the loss at the optimum over compute, as fitted, with its interval, and in print."""
    largest = inputs.derived("predictions")["C"].max()
    C = np.geomspace(inputs.rows("frontier")["C"].min() / 1.3, largest * 1.3, 80)
    own, printed = curve(inputs, "frontier", C=C), marin.VARIANTS["loss"]
    return pd.DataFrame(
        {
            "C": C,
            "L": own.value,
            "low": own.low,
            "high": own.high,
            "printed": printed.predict(printed.published, {"C": C}),
        }
    )


def repeated(inputs: FittedInputs, fit: str, unique: list[float]) -> Rows:
    """Yields losses over epochs for some sizes N at each number ``unique`` of tokens U.

    The ``kind`` of a row is run, law or print.
    """
    law, every = inputs.law(fit), inputs.rows(fit)
    for U in unique:
        runs = every[np.isclose(every["unique_tokens"], U)]
        sizes = runs["N_active"].value_counts().loc[lambda counts: counts > 2].index.sort_values()
        for N in sizes[:: -(-len(sizes) // SIZES)]:
            own = runs[runs["N_active"] == N]
            D = np.geomspace(own["D"].min(), own["D"].max(), POINTS)
            at = {"N": np.full(POINTS, N), "D": D, "U": np.full(POINTS, U)}
            line, printed = curve(inputs, fit, **at), law.predict(law.published or {}, at)
            kinds = {
                "run": own[["D", "L"]],
                "law": pd.DataFrame({"D": D, "L": line.value, "low": line.low, "high": line.high}),
                "print": pd.DataFrame({"D": D, "L": printed}),
            }
            for kind, rows in kinds.items():
                yield rows.assign(kind=kind, N=N, U=U, epochs=rows["D"] / U)
