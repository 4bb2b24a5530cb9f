"""moelaws eval: one prediction of a law."""

from __future__ import annotations

import math
from pathlib import Path

import click

from moelaws.cli.output import json_option, print_json
from moelaws.spec.errors import UserError


@click.command("eval")
@click.argument("law_id", metavar="LAW")
@click.argument("inputs", metavar="VAR=VALUE...", nargs=-1)
@click.option(
    "--params",
    default="published",
    show_default=True,
    metavar="published|FIT.json",
    help="Coefficients: the paper's or a fit's (where it is split, add the split column's value).",
)
@json_option
def command(law_id: str, inputs: tuple[str, ...], params: str, as_json: bool) -> None:
    """One prediction, such as: moelaws eval sparsity.loss N=1e9 D=2e10 S=0.9."""
    from moelaws import laws

    law = laws.get(law_id)
    given = dict(_pair(text) for text in inputs)
    coefficients = dict(law.published or {}) if params == "published" else {}
    split_by = ""
    if params != "published":
        from moelaws.fitting.report import read_fit

        report = read_fit(Path(params))
        if report.law != law.id:
            raise UserError(f"{params}: law is {report.law!r}; a fit of {law.id} is wanted")
        split_by = report.split_by
        coefficients = report.part(given).estimates()
    elif law.published is None:
        raise UserError(f"law {law.id} has no published coefficients; give --params FIT.json")

    names = [variable.name for variable in law.variables]
    for name in given:
        if name not in {*names, split_by}:
            raise UserError(f"{name} is no variable of {law.id}; it has {', '.join(names)}")
    columns = law.columns(given)
    for variable in law.variables:
        if not variable.domain.holds(columns[variable.name]).all():
            raise UserError(
                f"{variable.name} is {given[variable.name]:g}; it must be {variable.domain.text}"
            )
    value = float(law.predict(coefficients, columns))
    if as_json:
        print_json(
            {
                "law": law.id,
                "value": value,
                "unit": law.response.unit,
                "inputs": given,
                "params": coefficients,
            }
        )
    else:
        click.echo(f"{law.response.name} = {value:.6g} {law.response.unit}")


def _pair(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not name or not math.isfinite(number):
        raise UserError(f"{text!r} is not VAR=VALUE with a finite number, such as N=1e9")
    return name, number
