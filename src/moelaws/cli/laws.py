"""``moelaws laws``: what the laws declare; ``moelaws eval``: one prediction of a law."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from moelaws import laws
from moelaws.cli.common import (
    PARAMS,
    Answer,
    Data,
    Words,
    json_command,
    law_study_option,
    option,
    pairs,
    rows_text,
    table_text,
    warn,
)
from moelaws.fitting.report import FitReport, GroupFit, draws_path, group_draws, read_fit
from moelaws.laws.base import FittableLaw, Law, Variable
from moelaws.spec.errors import UserError
from moelaws.spec.numbers import amount

OF_ALL = "*"  # stands for all laws, with those of a user's own studies


@json_command
@click.argument("ref", metavar="[LAW]", required=False)
@law_study_option
def command(ref: str | None) -> Answer:
    """Show every law, or one with its equation, source, parameters, published values and errata.

    LAW is an id, or ID:VARIANT for another form of that law, such as the printed one. A law is
    followed by the equations of its variants.
    """
    join_own_laws([ref or OF_ALL])
    if ref is None:
        shown = ("id", "kind", "title", "source")
        every = [
            _read(laws.get(key), shown) | {"variants": list(laws.variants(key))}
            for key in laws.ids()
        ]
        return every, rows_text(every, "id", "title", "source")
    law = laws.get(ref)
    forms = {} if law.variant else laws.variants(law.id)
    data = _data(law) | {"variants": [_data(form) for form in forms.values()]}
    return data, "\n".join(_lines(law, data))


def join_own_laws(refs: Iterable[str]) -> None:
    """Makes the laws ``refs`` known where a user's own study in config/config.yaml has them.

    If all of these laws are known, as those of moelaws are, no configuration is read: mistakes in
    it then do not matter, and one prediction stays quick.
    """
    if all(ref.partition(":")[0] in laws.ids() for ref in refs):
        return
    from moelaws.spec.project import CONFIG, load_project, load_study

    if CONFIG.is_file() and (studies := load_project().studies) != "all":
        for file in studies:
            if file.endswith((".yaml", ".yml")):
                load_study(file)


def _read(of: object, names: Iterable[str]) -> Data:
    return {name: getattr(of, name) for name in names}


def _data(law: Law) -> Data:
    words = ("id", "variant", "kind", "title", "source", "equation", "latex")
    data = _read(law, words) | {
        "variables": _variables(law.variables),
        "results": _variables(law.results),
        "published": None if law.published is None else dict(law.published),
        "errata": law.errata,
    }
    if not isinstance(law, FittableLaw):
        return data
    traits = ("name", "unit", "description", "low", "high", "scale", "published")
    protocol = law.protocol
    return data | {
        "response": _read(law.response, ("name", "unit")),
        "parameters": [_read(p, traits) for p in law.parameters],
        "protocol": _read(protocol, ("objective", "delta", "holdout", "source"))
        | {
            "scale": "log" if law.log_response else "linear",
            "grid": dict(protocol.grid),
            "starts": protocol.n_starts,
            "sample": protocol.n_run,
        },
    }


def _variables(variables: Iterable[Variable]) -> list[Data]:
    return [
        _read(v, ("name", "unit", "description"))
        | {"allowed": v.domain.text, "default": v.default, "optional": v.default is not None}
        for v in variables
    ]


def _lines(law: Law, data: Mapping[str, Any]) -> Iterator[str]:
    yield f"{law.ref}: {law.title} ({law.kind})\n{law.equation}\n{law.source}\n"
    variables = [v | {"default": _exactly(v["default"])} for v in data["variables"]]
    yield rows_text(variables, "name", "unit", "allowed", "default", "description") + "\n"
    yield rows_text(data["results"], "name", "unit", "description")
    if isinstance(law, FittableLaw):
        yield from _of_fit(law, data)
    elif law.published:
        constants = [(name, _exactly(value)) for name, value in law.published.items()]
        yield "\n" + table_text(("constant", "published"), constants)
    for erratum in law.errata:
        yield f"Note: {erratum}"
    if forms := data["variants"]:
        yield f"\nVariants, each of which `moelaws laws {law.id}:VARIANT` shows whole:"
        yield rows_text(forms, "variant", "equation", "source")


def _exactly(value: float | None) -> str:
    """Writes a published value, or a default, with all its digits."""
    if value is None:
        return "-"
    return "may be left out" if math.isnan(value) else f"{value:.10g}"


def _of_fit(law: FittableLaw, data: Mapping[str, Any]) -> Iterator[str]:
    protocol, rows = law.protocol, []
    for p in data["parameters"]:
        starts = ", ".join(f"{x:g}" for x in protocol.grid.get(p["name"], ()))
        starts = ("ln: " if p["scale"] == "log" else "") + starts if starts else "-"
        rows.append(p | {"published": _exactly(p["published"]), "starts": starts})
    shown = ("name", "published", "low", "high", "starts", "unit", "description")
    yield "\n" + rows_text(rows, *shown)
    text = _objective(law)
    if protocol.grid:
        text += f"; {protocol.n_run:,} of the grid's {protocol.n_starts:,} starts"
    if protocol.holdout:
        text += f"; the paper holds out {protocol.holdout}"
    yield f"\nFit: {text} ({protocol.source})"


def _objective(law: FittableLaw) -> str:
    on = f"ln {law.response.name}" if law.log_response else law.response.name
    at = f"at delta = {law.protocol.delta:g}"
    return {
        "huber": f"sum of Huber losses of {on} {at}",
        "squared": f"sum of squares of {on}",
        "absolute": f"sum of absolute residuals of {on}",
    }[law.protocol.objective]


LABELS = {"mean": "the mean", "new": "a new observation"}


@json_command
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
def evaluate(ref: str, inputs: Words, params: str) -> Answer:
    """Evaluate a law at one point, such as: moelaws eval sparsity.loss N=1e9 D=2e10 S=14/17.

    LAW is a law's id or ID:VARIANT, as `moelaws laws` lists them. Where a variable is not given
    but follows from others that are (D from C and N, S from E and k), it is derived. With a fit's
    coefficients come intervals, and a warning where the point is beyond the fitted rows.
    """

    join_own_laws([ref])
    law, fitted = laws.get(ref), None
    if params == "published":
        given = given_numbers(inputs)
    elif not isinstance(law, FittableLaw):
        raise UserError(f"law {law.ref} is a formula: it takes no --params")
    else:
        report = read_fit(Path(params))
        given = given_numbers(inputs, report.split_by)
        fitted = _fitted(Path(params), law, report, given)
        law = fitted.law
    return _answer(law, given, fitted)


def given_numbers(inputs: Sequence[str], named: str = "") -> Data:
    """Returns variable -> value of the texts VAR=VALUE, where a value may be a fraction.

    The value of the variable ``named`` may be a word.
    """
    form = "VAR=VALUE with a finite number, such as N=1e9, N=1B or S=14/17"
    given: Data = {}
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


def _answer(law: Law, given: Mapping[str, Any], fitted: _Fitted | None) -> Answer:
    """Returns the prediction and its basis; values and units of several results are by name."""
    if fitted:
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
    shown = [result for result in law.results if result.name in values]
    units = {r.name: fitted.report.unit(r) if fitted else r.unit for r in shown}
    cases = {r.name: r.names[int(values[r.name])] for r in shown if r.names}
    answer: Data = {
        "law": law.ref,
        "value": values if several else values[shown[0].name],
        "unit": units if several else units[shown[0].name],
        "inputs": given,
        "params": coefficients,
    }
    if cases:
        answer["names"] = cases
    if notes:
        answer["derived"] = {n: {"value": derived[n], "by": text} for n, text in notes.items()}
    lines = []
    for name, value in values.items():
        unit = cases.get(name, "" if units[name] == "1" else units[name])
        lines.append(f"{name} = {value:.6g} {unit}".rstrip())
    if fitted:
        answer["intervals"] = intervals = fitted.intervals(columns)
        answer["warnings"] = fitted.beyond(columns)
        warn(*answer["warnings"])
        for kind, label in LABELS.items():
            if kind in intervals:
                low, high = intervals[kind]
                percent = 100 * intervals["level"]
                lines.append(f"{percent:g} % interval of {label}: {low:.6g} to {high:.6g}")
    lines += [f"with {name} = {derived[name]:.6g}: {text}" for name, text in notes.items()]
    return answer, "\n".join(lines)


@dataclass(frozen=True)
class _Fitted:
    """A fit at one point: its report, and the fit of the group of rows that holds there."""

    path: Path
    law: FittableLaw
    report: FitReport
    group: GroupFit

    def intervals(self, columns: Mapping[str, Any]) -> Data:
        """Returns the intervals of the mean and of a new observation.

        There are none without the file of the bootstrap's draws.
        """
        from moelaws.fitting.prediction import predict

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
