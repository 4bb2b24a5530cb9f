"""Forms of a law of routed models, judged on the published runs below 1.3B: why routing.loss.

Each form is fitted by squares of the log loss to the runs of all base models below a size, and
predicts the runs of that size, for the three largest sizes in turn. The 28 runs of 1.3B take no
part. The fits are SciPy's, from random starts, and know nothing of the engine. They print the table
of docs/laws.md.

    python benchmarks/routing_forms.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from moelaws.files.parquet import read_parquet
from moelaws.laws.base import Array
from moelaws.laws.clark.routing import effective_experts
from moelaws.spec.project import load_study
from moelaws.studies.routing.routers import main_runs
from moelaws.tables.at_hand import imported_files

LARGEST = 1.3e9  # base parameters of the runs that take no part
JUDGED = 3  # sizes, the largest below that one
STARTS = 40

Loss = Callable[..., Array]  # of x (n,), E (n,) and each parameter


@dataclass(frozen=True)
class Form:
    """A law of ln L over x = ln(N / 1e8) and E; ``low`` and ``high`` are where fits start.

    ``sizes`` of base models at least determine it. A form with ``routers`` takes the rows E, 1 for
    RL-R and 1 for Hash, (3, n), in place of E.
    """

    equation: str
    ln_loss: Loss
    low: tuple[float, ...]
    high: tuple[float, ...]
    sizes: int = 2
    routers: bool = False


def experts(start: float, more: float, E: Array) -> Array:
    """ln Eh of Eq 1; E_max is E_start times 1 + exp(``more``), so that both are free."""
    top = start + np.logaddexp(0.0, more)
    return np.log(effective_experts(E, np.exp(start), np.exp(top)))


def eq1(x: Array, E: Array, d: float, a: float, b: float, c: float, *saturation: float) -> Array:
    y = experts(*saturation, E)
    return d + a * x + b * y + c * x * y


def product(x: Array, y: Array, a: float, alpha: float, delta: float, e: float) -> Array:
    return np.logaddexp(a - alpha * x - delta * y, e)


def by_router(
    x: Array, E: Array, a: float, alpha: float, delta: float, e: float, *rest: float
) -> Array:
    y = experts(*rest[:2], E[0]) - rest[0]
    return np.logaddexp(a - alpha * x - (delta + rest[2] * E[1] + rest[3] * E[2]) * y, e)


def two_terms(
    x: Array, y: Array, a: float, alpha: float, b: float, beta: float, delta: float
) -> Array:
    return np.logaddexp(a - alpha * x, b - beta * x - delta * y)


def quadratic(x: Array, E: Array, *p: float) -> Array:
    y = np.log(E)
    return p[0] + p[1] * x + p[2] * y + p[3] * x**2 + p[4] * y**2 + p[5] * x * y


# Where their parameters start, but for those of Eh.
EQ1 = (0.0, -0.2, -0.4, 0.0), (1.2, 0.0, 0.0, 0.02)
PRODUCT = (-1.0, 0.1, 0.05, -1.0), (0.5, 0.3, 0.3, 0.6)
TWO_TERMS = (-1.0, 0.0, -1.0, 0.05, 0.05), (0.8, 0.3, 0.8, 0.3, 0.4)
LOW, HIGH = (0.0, 3.0), (2.0, 7.0)  # of ln E_start and of ``more``

FORMS = (
    Form("Eq 1", eq1, EQ1[0] + LOW, EQ1[1] + HIGH),
    Form(
        "Eq 1 + e",
        lambda x, E, e, *rest: np.logaddexp(eq1(x, E, *rest), e),
        (-1.0, *EQ1[0], *LOW),
        (0.6, *EQ1[1], *HIGH),
    ),
    Form(
        "a/(N^alpha Eh^delta) + e, which is `routing.loss`",
        lambda x, E, *p: product(x, experts(*p[4:], E), *p[:4]),
        PRODUCT[0] + LOW,
        PRODUCT[1] + HIGH,
    ),
    Form(
        "the same with a delta for each router, which is `routing.loss:by_router`",
        by_router,
        (*PRODUCT[0], *LOW, -0.03, -0.03),
        (*PRODUCT[1], *HIGH, 0.03, 0.03),
        routers=True,
    ),
    Form("a/(N^alpha E^delta) + e", lambda x, E, *p: product(x, np.log(E), *p), *PRODUCT),
    Form(
        "a/N^alpha + b/(N^beta Eh^delta)",
        lambda x, E, *p: two_terms(x, experts(*p[5:], E), *p[:5]),
        TWO_TERMS[0] + LOW,
        TWO_TERMS[1] + HIGH,
    ),
    Form(
        "a/N^alpha + b/(N^beta E^delta)", lambda x, E, *p: two_terms(x, np.log(E), *p), *TWO_TERMS
    ),
    Form("ln L quadratic in ln N and ln E", quadratic, (-1.0,) * 6, (1.0,) * 6, sizes=3),
)


def fitted(form: Form, rows: pd.DataFrame, rng: np.random.Generator) -> Array:
    """Returns the best parameters that the starts lead to."""
    x, E, ln_L = columns(rows, form)
    starts = rng.uniform(form.low, form.high, (STARTS, len(form.low)))
    done = [
        least_squares(lambda p: form.ln_loss(x, E, *p) - ln_L, start, x_scale="jac", max_nfev=2000)
        for start in starts
    ]
    return np.asarray(min(done, key=lambda one: one.cost).x)


def columns(rows: pd.DataFrame, form: Form) -> tuple[Array, Array, Array]:
    """Returns x, E (or E and the routers) and ln L of ``rows``, (n,) each."""
    N, E, L = (rows[name].to_numpy(float) for name in ("N_dense", "E", "L"))
    if form.routers:
        E = np.stack([E, *(rows[name].to_numpy(float) for name in ("rl_r", "hash"))])
    return np.log(N / 1e8), E, np.log(L)


def errors(form: Form, runs: pd.DataFrame) -> dict[str, Array]:
    """Returns size -> the errors in nats/token of its runs, predicted by the sizes below."""
    of_sizes = {}
    for N in np.sort(runs["N_dense"].unique())[-JUDGED:]:
        below, own = runs[runs["N_dense"] < N], runs[runs["N_dense"] == N]
        x, E, ln_L = columns(own, form)
        predicted = np.full(len(own), np.nan)
        if below["N_dense"].nunique() >= form.sizes:
            predicted = form.ln_loss(x, E, *fitted(form, below, np.random.default_rng(0)))
        of_sizes[str(own["size"].iloc[0])] = np.exp(predicted) - np.exp(ln_L)
    return of_sizes


def rms(values: Array) -> str:
    """Returns the root mean square as text; a dash where one is not known."""
    return f"{np.sqrt(np.mean(values**2)):.3f}" if np.isfinite(values).all() else "-"


def main() -> None:
    """Prints the table."""
    (table,) = imported_files(load_study("routing"))
    runs = main_runs(read_parquet(table).to_pandas())
    runs = runs[runs["N_dense"] < LARGEST]
    with np.errstate(over="ignore"):  # of steps that are refused
        by_form = {form: errors(form, runs) for form in FORMS}
    sizes = list(by_form[FORMS[0]])
    print(f"| L | parameters | {' | '.join(sizes)} | together |")
    print("|-" + "|-:" * (len(sizes) + 2) + "|")
    for form, of_sizes in by_form.items():
        cells = [
            rms(values) for values in (*of_sizes.values(), np.concatenate([*of_sizes.values()]))
        ]
        print(f"| {form.equation} | {len(form.low)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
