"""moelaws laws: what the laws declare."""

import math
from collections.abc import Iterable
from typing import Any

import click

from moelaws import laws
from moelaws.cli.answers import JsonCommand, print_answer, print_json, print_table, table_text
from moelaws.cli.common import law_study_option
from moelaws.laws.base import FittableLaw, Law, Variable

OF_ALL = "*"  # stands for all laws, with those of a user's own studies


@click.command("laws", cls=JsonCommand)
@click.argument("ref", metavar="[LAW]", required=False)
@law_study_option
def command(ref: str | None, as_json: bool) -> None:
    """Show every law, or one with its equation, source, parameters, published values and errata.

    LAW is an id, or ID:VARIANT for another form of that law, such as the printed one. A law is
    followed by the equations of its variants.
    """
    join_own_laws([ref or OF_ALL])
    if ref is None:
        known = [laws.get(key) for key in laws.ids()]
        shown = ("id", "kind", "title", "source")
        data = [_read(x, shown) | {"variants": list(laws.variants(x.id))} for x in known]
        rows = [(x.id, x.title, x.source) for x in known]
        print_answer(as_json, data, table_text(("law", "title", "source"), rows))
        return
    law = laws.get(ref)
    if as_json:
        forms = {} if law.variant else laws.variants(law.id)
        print_json(_data(law) | {"variants": [_data(form) for form in forms.values()]})
    else:
        _print(law)


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


def _read(of: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(of, name) for name in names}


def _data(law: Law) -> dict[str, Any]:
    words = ("id", "variant", "kind", "title", "source", "equation", "latex")
    data = _read(law, words) | {
        "variables": _variables(law.variables),
        "results": _variables(law.results),
        "published": None if law.published is None else dict(law.published),
        "errata": list(law.errata),
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
            "grid": {name: list(values) for name, values in protocol.grid.items()},
            "starts": protocol.n_starts,
            "sample": protocol.n_run,
        },
    }


def _variables(variables: Iterable[Variable]) -> list[dict[str, Any]]:
    return [
        _read(v, ("name", "unit", "description"))
        | {"allowed": v.domain.text, "default": v.default, "optional": v.default is not None}
        for v in variables
    ]


def _print(law: Law) -> None:
    click.echo(f"{law.ref}: {law.title} ({law.kind})")
    click.echo(f"{law.equation}\n{law.source}\n")
    print_table(
        ("variable", "unit", "allowed", "default", "meaning"),
        [(v.name, v.unit, v.domain.text, _default(v), v.description) for v in law.variables],
    )
    click.echo()
    print_table(
        ("result", "unit", "meaning"), [(v.name, v.unit, v.description) for v in law.results]
    )
    if isinstance(law, FittableLaw):
        _print_fit(law)
    elif law.published:
        click.echo()
        constants = [(name, _exactly(value)) for name, value in law.published.items()]
        print_table(("constant", "published"), constants)
    for erratum in law.errata:
        click.echo(f"Note: {erratum}")
    if forms := {} if law.variant else laws.variants(law.id):
        click.echo(f"\nVariants, each of which `moelaws laws {law.id}:VARIANT` shows whole:")
        rows = [(name, form.equation, form.source) for name, form in forms.items()]
        print_table(("variant", "equation", "source"), rows)


def _exactly(value: float | None) -> str:
    """Writes a published value with all its digits."""
    return "-" if value is None else f"{value:.10g}"


def _print_fit(law: FittableLaw) -> None:
    protocol, rows = law.protocol, []
    for p in law.parameters:
        starts = ", ".join(f"{x:g}" for x in protocol.grid.get(p.name, ()))
        starts = ("ln: " if p.scale == "log" else "") + starts if starts else "-"
        rows.append((p.name, _exactly(p.published), p.low, p.high, starts, p.unit, p.description))
    click.echo()
    print_table(("parameter", "published", "low", "high", "starts", "unit", "meaning"), rows)
    text = _objective(law)
    if protocol.grid:
        text += f"; {protocol.n_run:,} of the grid's {protocol.n_starts:,} starts"
    if protocol.holdout:
        text += f"; the paper holds out {protocol.holdout}"
    click.echo(f"\nFit: {text} ({protocol.source})")


def _objective(law: FittableLaw) -> str:
    on = f"ln {law.response.name}" if law.log_response else law.response.name
    at = f"at delta = {law.protocol.delta:g}"
    return {
        "huber": f"sum of Huber losses of {on} {at}",
        "squared": f"sum of squares of {on}",
        "absolute": f"sum of absolute residuals of {on}",
    }[law.protocol.objective]


def _default(variable: Variable) -> str:
    if variable.default is None:
        return "-"
    return "may be left out" if math.isnan(variable.default) else f"{variable.default:g}"
