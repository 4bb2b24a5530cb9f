"""moelaws laws: what the laws declare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moelaws.laws.base import FitProtocol, FittableLaw, Law, Variable

MOST_SHOWN = 12  # variants that are shown in full; the rest is counted


@click.command("laws")
@click.argument("ref", metavar="[LAW]", required=False)
@click.option("--latex", is_flag=True, help="The equations in LaTeX.")
@json_option
def command(ref: str | None, latex: bool, as_json: bool) -> None:
    """Every law, or one: equation, source, parameters, published values, errata, variants.

    LAW is an id, or ID:VARIANT for another form of that law, such as the printed one.
    """
    from moelaws import laws

    if ref is None:
        _list(as_json)
        return
    law = laws.get(ref)
    if as_json:
        forms = {} if law.variant else laws.variants(law.id)
        variants = [_data(form) | {"differs": differences(law, form)} for form in forms.values()]
        print_json(_data(law) | {"variants": variants})
    else:
        _print(law, latex)


def kind(law: Law) -> str:
    """How a law is computed, in words."""
    from moelaws.laws.base import Formula
    from moelaws.laws.kinds import LinearLaw, PowerLawSum

    for known, text in (
        (Formula, "formula"),
        (PowerLawSum, "sum of power laws"),
        (LinearLaw, "linear"),
    ):
        if isinstance(law, known):
            return text
    return "general"


def differences(law: Law, form: Law) -> dict[str, Any]:
    """What ``form`` declares otherwise: name -> [of the law, of the form].

    Of published values only those that differ; None where one of the two has no such value.
    """
    found: dict[str, Any] = {}
    for name in ("equation", "source", "variables", "results", "parameters", "objective"):
        ours, theirs = _trait(law, name), _trait(form, name)
        if ours != theirs:
            found[name] = [ours, theirs]
    ours, theirs = law.published or {}, form.published or {}
    published = {
        name: [ours.get(name), theirs.get(name)]
        for name in dict.fromkeys((*ours, *theirs))
        if ours.get(name) != theirs.get(name)
    }
    return found | ({"published": published} if published else {})


def _trait(law: Law, name: str) -> Any:
    from moelaws.laws.base import FittableLaw

    if name in ("variables", "results"):
        return ", ".join(v.name for v in getattr(law, name))
    if name in ("parameters", "objective"):
        if not isinstance(law, FittableLaw):
            return "none"
        return ", ".join(law.names) if name == "parameters" else _objective(law)
    return getattr(law, name)


def _list(as_json: bool) -> None:
    from moelaws import laws

    found = [(law, list(laws.variants(law.id))) for law in map(laws.get, laws.ids())]
    if as_json:
        print_json(
            [
                {
                    "id": law.id,
                    "kind": kind(law),
                    "title": law.title,
                    "source": law.source,
                    "variants": names,
                }
                for law, names in found
            ]
        )
        return
    print_table(
        ("law", "kind", "variants", "title", "source"),
        [(law.id, kind(law), len(names), law.title, law.source) for law, names in found],
    )


def _data(law: Law) -> dict[str, Any]:
    from moelaws.laws.base import FittableLaw

    data: dict[str, Any] = {
        "id": law.id,
        "variant": law.variant,
        "kind": kind(law),
        "title": law.title,
        "source": law.source,
        "equation": law.equation,
        "latex": law.latex,
        "variables": _variables(law.variables),
        "results": _variables(law.results),
        "published": None if law.published is None else dict(law.published),
        "errata": list(law.errata),
    }
    if not isinstance(law, FittableLaw):
        return data
    published = law.published or {}
    return data | {
        "response": {"name": law.response.name, "unit": law.response.unit},
        "parameters": [
            {
                "name": p.name,
                "unit": p.unit,
                "description": p.description,
                "low": p.low,
                "high": p.high,
                "scale": p.scale,
                "published": published.get(p.name),
            }
            for p in law.parameters
        ],
        "protocol": {
            "objective": law.protocol.objective,
            "scale": "log" if law.log_response else "linear",
            "delta": law.protocol.delta,
            "grid": {name: list(values) for name, values in law.protocol.grid.items()},
            "starts": law.protocol.n_starts,
            "sample": _run_starts(law.protocol),
            "holdout": law.protocol.holdout,
            "source": law.protocol.source,
        },
    }


def _variables(variables: Iterable[Variable]) -> list[dict[str, Any]]:
    return [
        {
            "name": v.name,
            "unit": v.unit,
            "description": v.description,
            "allowed": v.domain.text,
            "default": v.default,
            "optional": v.default is not None,
        }
        for v in variables
    ]


def _print(law: Law, latex: bool) -> None:
    from moelaws import laws
    from moelaws.laws.base import FittableLaw

    click.echo(f"{law.ref}: {law.title} ({kind(law)})")
    click.echo(f"{law.latex if latex else law.equation}\n{law.source}\n")
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
        print_table(
            ("constant", "published"),
            [(name, _printed(value)) for name, value in law.published.items()],
        )
    for erratum in law.errata:
        click.echo(f"Note: {erratum}")
    if law.variant:
        click.echo(f"\nWhere it differs from {law.id} (after > this form):")
        _print_differences(laws.get(law.id), law, latex)
        return
    forms = list(laws.variants(law.id).values())
    for form in forms[:MOST_SHOWN]:
        click.echo(f"\nVariant {form.ref}: {form.title}; it differs (after >) in")
        _print_differences(law, form, latex)
    if len(forms) > MOST_SHOWN:
        click.echo(
            f"\nand {len(forms) - MOST_SHOWN} more variants, {forms[MOST_SHOWN].ref} to "
            f"{forms[-1].ref}; --json has them all"
        )


def _print_differences(law: Law, form: Law, latex: bool) -> None:
    found = differences(law, form)
    if latex and law.latex != form.latex:
        found["equation"] = [law.latex, form.latex]
    published = found.pop("published", {})
    both = [pair for pair in published.values() if None not in pair]
    rows = [(name, *pair) for name, pair in found.items()]
    if both:
        rows += [(name, *map(_printed, pair)) for name, pair in published.items()]
    elif published:  # other parameters, or none printed: in the table of that form
        rows.append(("published", _listed(law), _listed(form)))
    for name, ours, theirs in rows:
        click.echo(f"  {name}: {ours}\n  {'':{len(name)}}> {theirs}")


def _listed(law: Law) -> str:
    values = law.published or {}
    return ", ".join(f"{name} {_printed(value)}" for name, value in values.items()) or "none"


def _printed(value: float | None) -> str:
    """A published value with all its digits."""
    return "-" if value is None else f"{value:.10g}"


def _print_fit(law: FittableLaw) -> None:
    published, grid = law.published or {}, law.protocol.grid
    click.echo()
    print_table(
        ("parameter", "published", "low", "high", "starts", "unit", "meaning"),
        [
            (
                p.name,
                _printed(published.get(p.name)),
                p.low,
                p.high,
                ("ln: " if p.scale == "log" else "") + ", ".join(f"{x:g}" for x in grid[p.name])
                if p.name in grid
                else "-",
                p.unit,
                p.description,
            )
            for p in law.parameters
        ],
    )
    protocol = law.protocol
    text = _objective(law)
    if grid:
        text += f"; {_run_starts(protocol):,} of the grid's {protocol.n_starts:,} starts"
    if protocol.holdout:
        text += f"; the paper holds out {protocol.holdout}"
    click.echo(f"\nFit: {text} ({protocol.source})")


def _objective(law: FittableLaw) -> str:
    on = f"ln {law.response.name}" if law.log_response else law.response.name
    at = f"at delta = {law.protocol.delta:g}"
    return {
        "huber": f"sum of Huber losses of {on} {at}",
        "huber_scale": f"Huber likelihood of {on} with a fitted scale, {at}",
        "squared": f"sum of squares of {on}",
        "absolute": f"sum of absolute residuals of {on}",
    }[law.protocol.objective]


def _run_starts(protocol: FitProtocol) -> int:
    return min(protocol.sample or protocol.n_starts, protocol.n_starts)


def _default(variable: Variable) -> str:
    if variable.default is None:
        return "-"
    return "may be left out" if variable.default != variable.default else f"{variable.default:g}"
