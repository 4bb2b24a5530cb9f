"""moelaws eval: one prediction of a law."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.output import json_option, print_json
from moelaws.spec.errors import UserError

if TYPE_CHECKING:
    from moelaws.fitting.report import FitPart, FitReport
    from moelaws.laws.base import FittableLaw, Law

LABELS = {"mean": "the mean", "new": "a new observation"}


@click.command("eval")
@click.argument("ref", metavar="LAW")
@click.argument("inputs", metavar="VAR=VALUE...", nargs=-1)
@click.option(
    "--params",
    default="published",
    show_default=True,
    metavar="published|FIT.json",
    help="Coefficients: the paper's or a fit's (where it is split, add the split column's value).",
)
@json_option
def command(ref: str, inputs: tuple[str, ...], params: str, as_json: bool) -> None:
    """What a law says at one point, such as: moelaws eval sparsity.loss N=1e9 D=2e10 S=14/17.

    LAW is a law's id or ID:VARIANT, as `moelaws laws` lists them. Where a variable is not given
    but follows from others that are (D from C and N, S from E and k), it is derived. With a fit's
    coefficients come intervals, and a warning where the point is beyond the fitted rows.
    """
    from moelaws import laws

    law = laws.get(ref)
    given: dict[str, float] = {}
    for text in inputs:
        name, number = _pair(text)
        if name in given:
            raise UserError(f"{name} is given twice: {given[name]:g} and {number:g}")
        given[name] = number
    fitted = None if params == "published" else _fitted(Path(params), law, given)
    if fitted is not None:
        law = fitted.law
        coefficients, also = fitted.part.estimates(), fitted.report.split_by
    elif law.published is not None:
        coefficients, also = dict(law.published), ""
    else:
        raise UserError(f"law {law.ref} has no published coefficients; give --params FIT.json")
    derived, notes = _derived(
        law, {n: x for n, x in given.items() if n != also or n in _names(law)}
    )
    columns = law.columns(given | derived)
    values = {name: float(x) for name, x in law.evaluate(coefficients, columns).items()}
    if len(values) > 1:
        values = _computed(law, values, columns)
    units = {result.name: result.unit for result in law.results}
    several = len(law.results) > 1
    (first, *_) = values
    data: dict[str, Any] = {
        "law": law.ref,
        "value": values if several else values[first],
        "unit": {name: units[name] for name in values} if several else units[first],
        "inputs": given,
        "params": coefficients,
    }
    if notes:
        data["derived"] = {n: {"value": derived[n], "by": text} for n, text in notes.items()}
    if fitted is not None:
        data |= {"intervals": fitted.intervals(columns), "warnings": fitted.beyond(columns)}
    for warning in data.get("warnings", ()):
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        print_json(data)
        return
    for name, value in values.items():
        click.echo(f"{name} = {value:.6g} {'' if units[name] == '1' else units[name]}".rstrip())
    for what, interval in data.get("intervals", {}).items():
        if what in LABELS:
            low, high = interval
            percent = f"{100 * data['intervals']['level']:g} %"
            click.echo(f"{percent} interval of {LABELS[what]}: {low:.6g} to {high:.6g}")
    for name, text in notes.items():
        click.echo(f"with {name} = {derived[name]:.6g}: {text}")


def _names(law: Law) -> list[str]:
    return [variable.name for variable in law.variables]


@dataclass(frozen=True)
class _Fitted:
    """A fit's answer at one point: its report, and the part of it that holds there."""

    path: Path
    law: FittableLaw
    report: FitReport
    part: FitPart

    def intervals(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Of the mean and of a new observation; empty where the draws' file is not there."""
        from moelaws.fitting.prediction import predict
        from moelaws.fitting.report import draws_path, part_draws

        if not draws_path(self.path).exists():
            click.echo(f"no intervals: there is no {draws_path(self.path)}", err=True)
            return {}
        drawn, level = part_draws(self.path, self.report, self.part), self.report.level
        estimates, residuals = self.part.estimates(), self.part.residuals
        prediction = predict(self.law, estimates, drawn, residuals, columns, level)
        ends = {
            "mean": (prediction.low, prediction.high),
            "new": (prediction.new_low, prediction.new_high),
        }
        known = {
            what: [float(low[0]), float(high[0])]
            for what, (low, high) in ends.items()
            if math.isfinite(low[0]) and math.isfinite(high[0])
        }
        return {"level": level, "method": self.part.intervals, **known}

    def beyond(self, columns: Mapping[str, Any]) -> list[str]:
        """A warning where the point lies outside what the fitted rows cover."""
        from moelaws.fitting.support import beyond_ranges, outside

        support = self.part.support
        if support is None or not outside(self.law, support, columns)[0]:
            return []
        point = {name: float(x) for name, x in columns.items()}
        why = "; ".join(beyond_ranges(support, point))
        return [f"extrapolation: {why or 'no fitted rows surround these variables together'}"]


def _fitted(path: Path, law: Law, given: Mapping[str, float]) -> _Fitted:
    """The fit at ``path`` at the point ``given``."""
    from moelaws import laws
    from moelaws.fitting.report import read_fit
    from moelaws.laws.base import FittableLaw

    if not isinstance(law, FittableLaw):
        raise UserError(f"law {law.ref} is a formula: it takes no --params")
    report = read_fit(path)
    if report.law.startswith(f"{law.ref}:"):  # of the law's forms the fit has chosen one
        law = laws.fittable(report.law)
    if report.law != law.ref:
        raise UserError(f"{path}: law is {report.law!r}; a fit of {law.ref} is wanted")
    return _Fitted(path, law, report, report.part(dict(given)))


def _derived(law: Law, given: Mapping[str, float]) -> tuple[dict[str, float], dict[str, str]]:
    """The variables that ``given`` leads to, and how; all of both within their domains."""
    import numpy as np

    from moelaws.laws.vocabulary import VOCABULARY, derive, plan, same_quantity, ways

    declared = {v.name: v for v in law.variables}
    usable = {n for n in given if n in VOCABULARY and same_quantity(declared.get(n, VOCABULARY[n]))}
    missing = [v for v in law.variables if v.default is None and v.name not in given]
    derivable = [v.name for v in missing if same_quantity(v)]
    needed = {name for step in plan(usable, derivable) for name in step.needs}
    for name in given:
        if name not in declared and name not in needed:
            raise UserError(
                f"{name} is no variable of {law.ref}; it has {', '.join(declared)}"
                + (", none of which is derived from it here" if name in VOCABULARY else "")
            )
    columns, notes = derive({name: np.array(given[name]) for name in usable}, derivable)
    derived = {name: float(value) for name, value in columns.items()}
    for variable in missing:
        if variable.name not in derived:
            raise UserError(
                f"law {law.ref}: variable {variable.name} is missing; it needs "
                f"{', '.join(v.name for v in law.variables if v.default is None)}"
                + (ways(variable.name) if variable.name in derivable else "")
            )
    for name, value in {**given, **derived}.items():
        variable = declared.get(name) or VOCABULARY[name]
        if not variable.domain.holds(np.array(value)).all():
            how = f" ({notes[name]})" if name in notes else ""
            raise UserError(f"{name} is {value:g}{how}; it must be {variable.domain.text}")
    return derived, notes


def _computed(
    law: Law, values: Mapping[str, float], columns: Mapping[str, Any]
) -> dict[str, float]:
    """Those results that the variables given suffice for: all where none was left out."""
    left_out = [name for name, value in columns.items() if math.isnan(value)]
    computed = {name: x for name, x in values.items() if not (left_out and math.isnan(x))}
    if not computed:
        raise UserError(
            f"law {law.ref}: nothing can be computed at this point; give also "
            f"{' or '.join(left_out)}"
        )
    return computed


def _pair(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    above, slash, below = value.partition("/")
    try:
        number = float(above) / float(below) if slash else float(above)
    except (ValueError, ZeroDivisionError):
        number = math.nan
    if not name or not math.isfinite(number):
        raise UserError(f"{text!r} is not VAR=VALUE with a finite number, such as N=1e9 or S=14/17")
    return name, number
