"""The paper tables of the cost model: optima, costs by equation, what each misprint changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular
from moelaws.studies.sectional.model import (
    CORRECTED,
    EXAMPLE,
    EXPERTS,
    PRINTED,
    SHAPES,
    evaluate,
)

HEADS = 32  # of the example of E4.2, as LLaMA-7B's
VALUES = ["Value as printed", "Value corrected"]
MISPRINTS = (
    ("E4.1", "2", "L^2 d0", "2 L^2 d0", "attention of an expert"),
    ("E4.2", "7-9", "3 d0^2/H", "3 d0^2", f"projections of a token, {HEADS} heads"),
    ("E4.3", "10", "3 L d0^2/(E^3 H)", "3 L d0^2/E^2", "projections of experts, 1 head"),
    ("E4.4", "11, 14, 17, 20, 22", "2 E L^2 d0", "2 E^2 L^2 d0", "whole cost S"),
    ("E4.5", "15", "E^5/(3(E^3+1))", "E^3/(E^3+1)", "reduction of projections"),
    ("E4.6", "16", "E^3/(2+3 E^3 L)", "E^3/(E^4+1)", "reduction of attention"),
    ("E4.7", "21", "1 - 2/E^4", "1 - 2/E^3", "E_opt of the printed cost"),
    ("E4.8", "sec 3.3", "a gain faster than E", "a loss at every E >= 1",
     "traditional / sectional cost"),
    ("E4.9", "sec 5.1", "LLaMA-7B: feed-forward width 4096", "d_model 4096", "no number"),
)  # fmt: skip
OVERHEADS = (1e6, 1e7, 1e8, 1e9)
VERDICT = (
    "The whole number of experts of least cost is 1 in both forms, for every shape and overhead: a "
    "second expert always adds cost, and E sections cost more than E traditional experts."
)


def optima(inputs: Inputs) -> Tabular:
    """Sets E_opt by Eq 21, by the printed and the corrected cost, and what a second expert adds."""
    rows = []
    for L, d0 in ((4096, 4096), *(shape for shape in SHAPES if shape != (4096, 4096))):
        for alpha in OVERHEADS:
            at = {"L": float(L), "d0": float(d0), "alpha": alpha}
            printed, corrected = evaluate(PRINTED, **at), evaluate(CORRECTED, **at)
            single = evaluate(CORRECTED, E=1.0, **at)["S"]
            rows.append(
                {
                    "L": L,
                    "d0": d0,
                    "alpha": alpha,
                    "Eq 21 as printed": float(printed["E_opt_eq21"]),
                    "least S as printed": float(printed["E_opt"]),
                    "least S corrected": float(corrected["E_opt"]),
                    "whole, printed": float(printed["E_whole"]),
                    "whole, corrected": float(corrected["E_whole"]),
                    "S(2)/S(1), corrected": float(1 + corrected["S_step"] / single),
                }
            )
    notes = ("Computed from the cost model; no run is behind it.", VERDICT)
    return Tabular(pd.DataFrame(rows), digits=6, notes=notes)


def costs(inputs: Inputs) -> Tabular:
    """Sets the costs of one and of eight experts, equation by equation."""
    L, d0 = EXAMPLE["L"], EXAMPLE["d0"]
    rows = []
    for E in (1.0, float(EXPERTS)):
        printed, corrected = (evaluate(form, E=E, **EXAMPLE) for form in (PRINTED, CORRECTED))
        traditional = 3 * L * d0**2
        rows += [
            _cost(
                E, "traditional: projections of E experts", "1", E * traditional, E * traditional
            ),
            _cost(E, "traditional: attention of E experts", "2", E * L**2 * d0, 2 * E * L**2 * d0),
            *(
                _cost(E, f"sectional: {name}", equation, printed[term], corrected[term])
                for term, name, equation in (
                    ("projections", "projections", "6"),
                    ("attention_before", "attention before the experts", "11"),
                    ("attention_experts", "attention of the experts", "13"),
                    ("overhead", "overhead", "19"),
                    ("S", "whole cost", "20"),
                )
            ),
        ]
    notes = (
        f"Multiply-adds at L = {L:g} tokens an expert, d0 = {d0:g}, alpha = "
        f"{EXAMPLE['alpha']:g}. Computed from the cost model; no run is behind it.",
    )
    return Tabular(pd.DataFrame(rows), notes=notes)


def errata(inputs: Inputs) -> Tabular:
    """Sets each misprint with what it changes, in numbers."""
    at = {"E": float(EXPERTS), **EXAMPLE}
    printed, corrected = evaluate(PRINTED, **at), evaluate(CORRECTED, **at)
    L, d0, E = at["L"], at["d0"], at["E"]
    values = [
        (L**2 * d0, 2 * L**2 * d0),
        (3 * d0**2 / HEADS, 3 * d0**2),
        (3 * L * d0**2 / E**3, 3 * L * d0**2 / E**2),
        (printed["S"], corrected["S"]),
        (printed["projection_factor"], corrected["projection_factor"]),
        (printed["attention_factor"], corrected["attention_factor"]),
        (printed["E_opt_eq21"], printed["E_opt"]),
        (np.nan, corrected["total_factor"]),
        (np.nan, np.nan),
    ]
    words = pd.DataFrame(MISPRINTS, columns=["Erratum", "Eq", "Printed", "Corrected", "Changes"])
    frame = words.join(pd.DataFrame(values, columns=VALUES, dtype=float))
    notes = (
        f"Numbers at E = {E:g}, L = {L:g}, d0 = {d0:g}, alpha = {at['alpha']:g}: multiply-adds, "
        "ratios, experts.",
        VERDICT,
    )
    return Tabular(frame, digits=6, notes=notes)


def _cost(E: float, what: str, equation: str, printed: Any, corrected: Any) -> dict[str, Any]:
    return {
        "E": E,
        "Cost": what,
        "Eq": equation,
        "As printed": float(printed),
        "Corrected": float(corrected),
        "Corrected / printed": float(corrected / printed),
    }
