"""``moelaws eval``: one prediction of a law."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.answers import Answer, JsonCommand
from moelaws.cli.common import PARAMS, Words, law_study_option, option, pairs
from moelaws.spec.errors import UserError
from moelaws.spec.numbers import amount

if TYPE_CHECKING:
    from moelaws.fitting.report import FitReport, GroupFit
    from moelaws.laws.base import FittableLaw, Law

LABELS = {"mean": "the mean", "new": "a new observation"}


@click.command("eval", cls=JsonCommand)
@click.argument("ref", metavar="LAW")
@click.argument("inputs", metavar="VAR=VALUE...", nargs=-1)
@option(
    "--params",
    "Coefficients: the paper's or a fit's (where it is split, add the split column's value).",
    PARAMS,
    "published",
    metavar="published|FIT.json",
)
@law_study_option
def command(ref: str, inputs: Words, params: str) -> Answer:
    """Evaluate a law at one point, such as: moelaws eval sparsity.loss N=1e9 D=2e10 S=14/17.

    LAW is a law's id or ID:VARIANT, as `moelaws laws` lists them. Where a variable is not given
    but follows from others that are (D from C and N, S from E and k), it is derived. With a fit's
    coefficients come intervals, and a warning where the point is beyond the fitted rows.
    """
    from moelaws import laws
    from moelaws.cli.laws import join_own_laws
    from moelaws.laws.base import FittableLaw

    join_own_laws([ref])
    law, fitted = laws.get(ref), None
    if params == "published":
        given = given_numbers(inputs)
    elif not isinstance(law, FittableLaw):
        raise UserError(f"law {law.ref} is a formula: it takes no --params")
    else:
        from moelaws.fitting.report import read_fit  # a published law stays quick without it

        report = read_fit(Path(params))
        given = given_numbers(inputs, report.split_by)
        fitted = _fitted(Path(params), law, report, given)
        law = fitted.law
    answer = _answer(law, given, fitted)
    for warning in answer.get("warnings", ()):
        click.echo(f"warning: {warning}", err=True)
    return answer, "\n".join(_lines(law, answer))


def given_numbers(inputs: Sequence[str], named: str = "") -> dict[str, Any]:
    """Returns variable -> value of the texts VAR=VALUE, where a value may be a fraction.

    The value of the variable ``named`` may be a word.
    """
    form = "VAR=VALUE with a finite number, such as N=1e9, N=1B or S=14/17"
    given: dict[str, Any] = {}
    for name, value in pairs("", inputs, form).items():
        above, slash, below = value.partition("/")
        try:
            x: Any = amount(above) / amount(below) if slash else amount(above)
        except (ValueError, ZeroDivisionError):
            x = value if name == named else math.nan
        if not isinstance(x, str) and not math.isfinite(x):
            raise UserError(f"{f'{name}={value}'!r} is not {form}")
        given[name] = x
    return given


def _answer(law: Law, given: Mapping[str, Any], fitted: _Fitted | None) -> dict[str, Any]:
    """Returns the prediction and its basis; values and units of several results are by name."""
    if fitted is not None:
        coefficients, split_by = fitted.group.estimates(), fitted.report.split_by
    elif law.published is not None:
        coefficients, split_by = dict(law.published), ""
    else:
        raise UserError(f"law {law.ref} has no published coefficients; give --params FIT.json")
    names = {variable.name for variable in law.variables}
    variables = {n: x for n, x in given.items() if n != split_by or n in names}
    derived, notes = _derived(law, variables)
    columns = law.columns({**given, **derived})
    values = {name: float(x) for name, x in law.evaluate(coefficients, columns).items()}
    left_out = [name for name, value in columns.items() if math.isnan(value)]
    # Where a variable is left out, the results that need it are left out, too.
    if several := len(values) > 1:
        values = {name: x for name, x in values.items() if not (left_out and math.isnan(x))}
    if not values:
        raise UserError(
            f"law {law.ref}: nothing can be computed at this point; give also "
            f"{' or '.join(left_out)}"
        )
    unit_of = {r.name: fitted.report.unit(r) if fitted else r.unit for r in law.results}
    units = {name: unit_of[name] for name in values}
    answer: dict[str, Any] = {
        "law": law.ref,
        "value": values if several else next(iter(values.values())),
        "unit": units if several else next(iter(units.values())),
        "inputs": given,
        "params": coefficients,
    }
    cases = {result.name: result.names for result in law.results if result.names}
    if named := {name: cases[name][int(values[name])] for name in cases if name in values}:
        answer["names"] = named
    if notes:
        answer["derived"] = {n: {"value": derived[n], "by": text} for n, text in notes.items()}
    if fitted is not None:
        answer |= {"intervals": fitted.intervals(columns), "warnings": fitted.beyond(columns)}
    return answer


def _lines(law: Law, answer: Mapping[str, Any]) -> Iterator[str]:
    values, units = answer["value"], answer["unit"]
    if not isinstance(values, dict):
        name = law.results[0].name
        values, units = {name: values}, {name: units}
    for name, value in values.items():
        unit = answer.get("names", {}).get(name, "" if units[name] == "1" else units[name])
        yield f"{name} = {value:.6g} {unit}".rstrip()
    intervals = answer.get("intervals", {})
    for kind, label in LABELS.items():
        if kind in intervals:
            low, high = intervals[kind]
            percent = f"{100 * intervals['level']:g} %"
            yield f"{percent} interval of {label}: {low:.6g} to {high:.6g}"
    for name, derived in answer.get("derived", {}).items():
        yield f"with {name} = {derived['value']:.6g}: {derived['by']}"


@dataclass(frozen=True)
class _Fitted:
    """A fit at one point: its report, and the fit of the group of rows that holds there."""

    path: Path
    law: FittableLaw
    report: FitReport
    group: GroupFit

    def intervals(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the intervals of the mean and of a new observation.

        There are none without the file of the bootstrap's draws.
        """
        from moelaws.fitting.prediction import predict
        from moelaws.fitting.report import draws_path, group_draws

        if not draws_path(self.path).exists():
            click.echo(f"no intervals: there is no {draws_path(self.path)}", err=True)
            return {}
        drawn, level = group_draws(self.path, self.report, self.group), self.report.level
        prediction = predict(self.law, self.group, drawn, columns, level)
        _, *ends = (float(x[0]) for x in vars(prediction).values())
        known = {
            what: pair
            for what, pair in zip(LABELS, (ends[:2], ends[2:]), strict=True)
            if all(map(math.isfinite, pair))
        }
        return {"level": level, "method": self.group.intervals, **known}

    def beyond(self, columns: Mapping[str, Any]) -> list[str]:
        """Returns a warning where the point lies outside what the fitted rows cover."""
        from moelaws.fitting.prediction import beyond_ranges, beyond_the_rows, outside

        support = self.group.hull
        if support is None or not outside(self.law, support, columns)[0]:
            return []
        point = {name: float(x) for name, x in columns.items()}
        why = "; ".join(beyond_ranges(support, point))
        why = why or "no fitted rows surround these variables together"
        return [f"extrapolation: {why}", beyond_the_rows(self.group)]


def _fitted(path: Path, law: FittableLaw, report: FitReport, given: Mapping[str, Any]) -> _Fitted:
    """Returns the fit at ``path``, with the group of rows that the point ``given`` belongs to."""
    from moelaws import laws

    if report.law.startswith(f"{law.ref}:"):  # the fit has chosen one of the law's forms
        law = laws.fittable(report.law)
    if report.law != law.ref:
        raise UserError(f"{path} holds a fit of {report.law}; give a fit of {law.ref}")
    group = report.group(dict(given))
    variables = {variable.name for variable in law.variables}
    for key, names, own in (
        ("params", group.params, set(law.names)),
        ("hull.ranges", group.hull.ranges if group.hull else variables, variables),
    ):
        if set(names) != own:
            raise UserError(
                f"{path}: {key} has {', '.join(names) or 'none'}; those of {law.ref} are "
                f"{', '.join(sorted(own))}: make the fit again"
            )
    return _Fitted(path, law, report, group)


def _derived(law: Law, given: Mapping[str, float]) -> tuple[dict[str, float], dict[str, str]]:
    """Returns the variables that follow from ``given``, and how each of them follows.

    A variable outside its domain is refused.
    """
    import numpy as np

    from moelaws.laws.vocabulary import VOCABULARY, derive, plan, same_quantity, ways

    declared = {v.name: v for v in law.variables}
    usable = {n for n in given if n in VOCABULARY and same_quantity(declared.get(n, VOCABULARY[n]))}
    missing = [v for v in law.variables if v.default is None and v.name not in given]
    derivable = [v.name for v in missing if same_quantity(v)]
    needed = {name for step in plan(usable, derivable, law.derivations) for name in step.needs}
    for name in given:
        if name not in declared and name not in needed:
            raise UserError(
                f"{name} is no variable of {law.ref}; it has {', '.join(declared)}"
                + (", none of which is derived from it here" if name in VOCABULARY else "")
            )
    columns, notes = derive(
        {name: np.array(given[name]) for name in usable}, derivable, law.derivations
    )
    derived = {name: float(value) for name, value in columns.items()}
    for variable in missing:
        if variable.name not in derived:
            raise UserError(
                f"law {law.ref}: variable {variable.name} is missing; it needs "
                f"{', '.join(v.name for v in law.variables if v.default is None)}"
                + (ways(variable.name, law.derivations) if variable.name in derivable else "")
            )
    for name, value in {**given, **derived}.items():
        variable = declared.get(name) or VOCABULARY[name]
        if not variable.domain.holds(np.array(value)).all():
            how = f" ({notes[name]})" if name in notes else ""
            raise UserError(f"{name} is {value:g}{how}; it must be {variable.domain.text}")
    return derived, notes
