"""A trial of rules: how often each says "supported", or the opposite, of simulated tables."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from moelaws import laws
from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Verdict, verdict
from moelaws.fitting.fit import fit
from moelaws.fitting.report import write_fit
from moelaws.spec.fit import Fit
from moelaws.spec.references import resolve
from moelaws.spec.study import Study

SUPPORTED, NOT_SUPPORTED, _ = Verdict


@dataclass(frozen=True)
class Trial:
    """Tables by seed, and how many of them may support each of the claims, or refute it.

    Of a hundred tables without the effect at most ten may support a claim.
    """

    claims: tuple[str, ...]
    made: Callable[[int], Any]  # seed -> a study's table, or what else the rule reads
    supported: tuple[int, int] = (0, 10)
    refuted: tuple[int, int] = (0, 100)
    tables: int = 100
    kind: str = ""  # "null" or "effect", for the shipped counts (benchmarks/nulls.py)


def null(claims: str | tuple[str, ...], made: Callable[[int], Any], tables: int = 100) -> Trial:
    """Tables without the effect of one claim or several, a hundred or fewer."""
    # By the level of the intervals, more have a chance of 5 % or less.
    most = {12: 3, 20: 4, 40: 4, 100: 10}[tables]
    return Trial(_names(claims), made, (0, most), tables=tables, kind="null")


def edge(claims: str | tuple[str, ...], made: Callable[[int], Any], tables: int = 100) -> Trial:
    """Tables at the edge of what is claimed, which refute the claims as seldom as they support."""
    trial = null(claims, made, tables)
    return replace(trial, refuted=trial.supported)


def seen(
    claims: str | tuple[str, ...], made: Callable[[int], Any], least: int, tables: int = 100
) -> Trial:
    """Tables with the effect, of which ``least`` or more support each of the claims."""
    return Trial(_names(claims), made, (least, tables), tables=tables, kind="effect")


def _names(claims: str | tuple[str, ...]) -> tuple[str, ...]:
    return (claims,) if isinstance(claims, str) else claims


def fit_of(spec: Fit, rows: pd.DataFrame) -> Path:
    """A fit's report in the current folder, without the errors of predictions beyond the runs."""
    path = Path(f"{spec.name}.json")
    write_fit(fit(laws.fittable(spec.law), rows, spec, calibrated=False), path)
    return path


def decided(study: Study, name: str, given: Any) -> Verdict:
    """The verdict on the claim of this name, of a table or of what else the rule reads."""
    claim = study.entry("claims", name)
    inputs = Inputs(frame=given) if isinstance(given, pd.DataFrame) else given
    evidence = resolve(study.home, claim.code)(inputs, **claim.arguments)
    return verdict(evidence.intervals, claim.expect.above, claim.expect.below)
