"""A page for each law, from what `moelaws laws` says of it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from click.testing import CliRunner
from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files
from navigation import expand
from text import code, plain, table

from moelaws import laws
from moelaws.cli import cli
from moelaws.spec.project import load_study, study_names

FOLDER = "reference/laws/"
SHOWN_VARIANTS = 12


@cache
def told(*ref: str) -> Any:
    """What `moelaws laws [LAW] --json` prints."""
    done = CliRunner().invoke(cli, ["laws", *ref, "--json"], catch_exceptions=False)
    return json.loads(done.output)


def on_config(config: Any) -> None:
    expand(config, FOLDER, laws.ids())


def on_files(files: Files, *, config: Any) -> None:
    uses = _uses()
    for ref in laws.ids():
        content = _page(told(ref), uses.get(ref, []))
        files.append(File.generated(config, f"{FOLDER}{ref}.md", content=content))
    files.append(File.generated(config, f"{FOLDER}index.md", content=_index()))


def _uses() -> dict[str, list[str]]:
    """Law -> the fits of the studies that fit it or a form of it."""
    uses: dict[str, list[str]] = {}
    for name in study_names():
        for fit in load_study(name).fits:
            uses.setdefault(fit.law.partition(":")[0], []).append(f"{name}:{fit.name}")
    return uses


def _index() -> str:
    rows = [
        (f"[`{law['id']}`]({law['id']}.md)", plain(law["title"]), law["kind"], plain(law["source"]))
        for law in told()
    ]
    return (
        "# Laws\n\nEach page shows one law as the code declares it: the equation, its variables, "
        "its parameters with the values in print, what is wrong in print, and how it is "
        "fitted. [What the laws say](../../laws.md) tells them in words, and `moelaws laws` shows "
        "the same in a terminal.\n\n" + table(("law", "title", "kind", "source"), rows) + "\n"
    )


def _page(law: dict[str, Any], uses: list[str]) -> str:
    parts = [
        f"# {law['id']}",
        f"{plain(law['title'])}. Source: {plain(law['source'])}.",
        _math(law),
    ]
    parts += ["As plain text: " + code(law["equation"])]
    parts += ["## Variables", _variables(law["variables"], "variable")]
    parts += ["## Results", _variables(law["results"], "result")]
    if "parameters" in law:
        parts += ["## Parameters", _parameters(law), "## How it is fitted", _protocol(law, uses)]
    elif law["published"]:
        rows = [(code(name), _number(value)) for name, value in law["published"].items()]
        parts += ["## Constants", table(("constant", "published"), rows)]
    if law["errata"]:
        parts += ["## Errata and notes", _listed(law["errata"])]
    if law["variants"]:
        parts += ["## Other forms", *_forms(law)]
    return "\n\n".join(parts) + "\n"


def _listed(texts: list[str]) -> str:
    return "\n".join(f"- {plain(text)}" for text in texts)


def _math(law: dict[str, Any]) -> str:
    return f'<div class="equation">{convert(law["latex"], display="block")}</div>'


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def _bound(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _variables(variables: list[dict[str, Any]], kind: str) -> str:
    rows = []
    for v in variables:
        default = (
            "may be left out" if v["optional"] and v["default"] is None else _number(v["default"])
        )
        rows.append(
            (code(v["name"]), plain(v["description"]), plain(v["unit"]), v["allowed"], default)
        )
    return table((kind, "meaning", "unit", "allowed", "default"), rows)


def _parameters(law: dict[str, Any]) -> str:
    head = ("parameter", "published", "low", "high", "scale", "unit", "meaning")
    rows = [
        (
            code(p["name"]),
            _number(p["published"]) or "not printed",
            _bound(p["low"]),
            _bound(p["high"]),
            p["scale"],
            plain(p["unit"]),
            plain(p["description"]),
        )
        for p in law["parameters"]
    ]
    return table(head, rows)


def _protocol(law: dict[str, Any], uses: list[str]) -> str:
    protocol, response = law["protocol"], law["response"]["name"]
    on = f"ln {response}" if protocol["scale"] == "log" else response
    delta = f" with delta = {protocol['delta']:g}" if "huber" in protocol["objective"] else ""
    rows = [
        ("objective", f"{code(protocol['objective'])} of {plain(on)}{delta}"),
        ("starts", f"{protocol['sample']:,} of {protocol['starts']:,}"),
        ("held out by the paper", plain(protocol["holdout"])),
        ("source", plain(protocol["source"])),
        ("fits of the studies", ", ".join(map(code, uses))),
    ]
    return table(("what", "how"), [row for row in rows if row[1]])


def _forms(law: dict[str, Any]) -> list[str]:
    parts = []
    for form in law["variants"][:SHOWN_VARIANTS]:
        parts += [f"### {law['id']}:{form['variant']}", f"{plain(form['title'])}."]
        if form["latex"] != law["latex"]:
            parts.append(_math(form))
        own, other = form["published"] or {}, law["published"] or {}
        names = [name for name in own | other if own.get(name) != other.get(name)]
        rows = [(code(name), _number(other.get(name)), _number(own.get(name))) for name in names]
        if rows:
            parts.append(table(("published", law["id"], "this form"), rows))
        parts.append(_listed([e for e in form["errata"] if e not in law["errata"]]))
    if more := law["variants"][SHOWN_VARIANTS:]:
        first, last = (f"`{law['id']}:{form['variant']}`" for form in (more[0], more[-1]))
        parts.append(
            f"{len(more)} more forms go from {first} to {last}; `moelaws laws` has them all."
        )
    return parts
