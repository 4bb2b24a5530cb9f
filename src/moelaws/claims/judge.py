"""Judge a study's claims, and set the verdicts of several studies as one page."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Claim, Verdict
from moelaws.spec.errors import UserError
from moelaws.spec.study import Study


def judge(study: Study, inputs: Inputs) -> dict[str, Any]:
    """The verdicts on the study's claims, as JSON data.

    Raises:
        UserError: for a claim without a rule, or a file that is not there.
    """
    rules = claims_of(study.study) if study.claims else {}
    judged = []
    for entry in study.claims:
        if entry.id not in rules:
            raise UserError(
                f"claim {entry.id!r}: moelaws.claims.{study.study} does not judge it; it judges "
                f"{', '.join(rules)}"
            )
        claim = rules[entry.id]
        finding = claim.judge(inputs.only(entry.fits, entry.derived))
        judged.append(
            {
                "id": entry.id,
                "statement": claim.statement,
                "source": claim.source,
                "rule": claim.rule,
                "figure": entry.figure,
                **asdict(finding),
            }
        )
    simulated = study.simulation if "simulated" in inputs.sources else None
    return {
        "study": study.study,
        "title": study.title,
        "source": "+".join(inputs.sources) or "computed",
        "assumed": " ".join(simulated.assumed.split()) if simulated else "",
        "claims": judged,
    }


def claims_of(study: str) -> Mapping[str, Claim]:
    """The claims that ``moelaws.claims.<study>`` judges.

    Raises:
        UserError: where there is no such module.
    """
    module = f"moelaws.claims.{study}"
    try:
        found: Mapping[str, Claim] = importlib.import_module(module).CLAIMS
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise UserError(f"study {study!r} has claims, but no module {module}") from None
    return found


def page(verdicts: Sequence[Mapping[str, Any]], tier: str, figures: Mapping[str, Path]) -> str:
    """Markdown of judged studies.

    Args:
        verdicts: of ``judge``, one a study.
        tier: of the grids.
        figures: study -> the folder of its figures, relative to the page.
    """
    lines = [
        f"# The papers' claims beside these runs ({tier} tier)",
        "",
        "Each verdict is computed by the rule that stands below it from the tables and fits of "
        "this tier; intervals are 90 % unless a line says otherwise. *Cannot tell* is a result: "
        "the runs are too few, too small or too noisy for the rule.",
        "",
        "| study | " + " | ".join(Verdict) + " |",
        "|-|" + "-:|" * len(Verdict),
    ]
    for study in verdicts:
        found = [claim["verdict"] for claim in study["claims"]]
        counts = " | ".join(str(found.count(verdict)) for verdict in Verdict)
        lines.append(f"| [{study['study']}](#{study['study']}) | {counts} |")
    for study in verdicts:
        lines += ["", f"## {study['study']}", "", f"{study['title']}. {_basis(study['source'])}"]
        if study["assumed"]:
            lines += ["", f"Assumed: {study['assumed']}"]
        for claim in study["claims"]:
            lines += ["", *_section(claim, figures[study["study"]])]
    return "\n".join(lines) + "\n"


def _basis(source: str) -> str:
    if source == "computed":
        return "Computed from the paper's own model; no run is behind it."
    if source == "trained":
        return "From runs trained here."
    return f"**From {source.replace('+', ' and ')} data**, not from trainings here alone."


def _section(claim: Mapping[str, Any], figures: Path) -> list[str]:
    figure = figures / claim["figure"]
    picture = figure.with_suffix(".md" if claim["figure"].startswith("T") else ".png")
    lines = [
        f"### {claim['id'].replace('_', ' ')}: {claim['verdict']}",
        "",
        f"- *Claim* ({claim['source']}): {claim['statement']}",
        f"- *These runs*: {claim['measured']}",
        f"- *Rule*: {claim['rule']}",
    ]
    if claim["needed"]:
        lines.append(f"- *What would decide*: {claim['needed']}")
    return [*lines, f"- *Look at*: [{claim['figure']}]({picture.as_posix()})"]
