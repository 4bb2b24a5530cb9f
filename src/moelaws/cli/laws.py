"""moelaws laws: what the laws declare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from moelaws.laws.base import Law


@click.command("laws")
@click.argument("law_id", metavar="[LAW]", required=False)
@json_option
def command(law_id: str | None, as_json: bool) -> None:
    """Every law, or one: equation, source, parameters, published values, errata."""
    from moelaws import laws

    if law_id is None:
        rows = [(law.id, law.title, law.source) for law in map(laws.get, laws.ids())]
        if as_json:
            print_json([dict(zip(("id", "title", "source"), row, strict=True)) for row in rows])
        else:
            print_table(("law", "title", "source"), rows)
        return
    law = laws.get(law_id)
    if as_json:
        print_json(_data(law))
    else:
        _print(law)


def _data(law: Law) -> dict[str, Any]:
    protocol = law.protocol
    return {
        "id": law.id,
        "title": law.title,
        "source": law.source,
        "equation": law.equation,
        "latex": law.latex,
        "response": {"name": law.response.name, "unit": law.response.unit},
        "variables": [
            {
                "name": v.name,
                "unit": v.unit,
                "description": v.description,
                "allowed": v.domain.text,
            }
            for v in law.variables
        ],
        "parameters": [
            {
                "name": p.name,
                "unit": p.unit,
                "description": p.description,
                "low": p.low,
                "high": p.high,
                "scale": p.scale,
                "published": (law.published or {}).get(p.name),
            }
            for p in law.parameters
        ],
        "published": None if law.published is None else dict(law.published),
        "protocol": {
            "objective": protocol.objective,
            "delta": protocol.delta,
            "grid": {name: list(values) for name, values in protocol.grid.items()},
            "starts": protocol.n_starts,
            "sample": min(protocol.sample, protocol.n_starts),
            "holdout": protocol.holdout,
            "source": protocol.source,
        },
        "errata": list(law.errata),
    }


def _print(law: Law) -> None:
    click.echo(f"{law.id}: {law.title}\n{law.equation}\n{law.source}\n")
    print_table(
        ("variable", "unit", "allowed", "meaning"),
        [(v.name, v.unit, v.domain.text, v.description) for v in law.variables]
        + [(law.response.name, law.response.unit, law.response.domain.text, "the response")],
    )
    published = law.published or {}
    click.echo()
    print_table(
        ("parameter", "published", "low", "high", "starts", "unit", "meaning"),
        [
            (
                p.name,
                published.get(p.name),
                p.low,
                p.high,
                ("ln: " if p.scale == "log" else "")
                + ", ".join(f"{x:g}" for x in law.protocol.grid.get(p.name, ()))
                if law.protocol.grid
                else "-",
                p.unit,
                p.description,
            )
            for p in law.parameters
        ],
    )
    click.echo("\nFit: " + _protocol(law))
    for erratum in law.errata:
        click.echo(f"Note: {erratum}")


def _protocol(law: Law) -> str:
    protocol = law.protocol
    if protocol.objective == "squared":
        return f"least squares on {law.response.name} ({protocol.source})"
    text = (
        f"sum of Huber losses of ln {law.response.name} at delta = {protocol.delta:g}; "
        f"{min(protocol.sample, protocol.n_starts):,} of the grid's {protocol.n_starts:,} starts"
    )
    held = f"; the paper holds out {protocol.holdout}" if protocol.holdout else ""
    return f"{text}{held} ({protocol.source})"
