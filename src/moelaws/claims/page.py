"""The judged claims of several studies as one page to read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from moelaws.claims.base import JudgedClaim, JudgedStudy, Verdict
from moelaws.records.files import read_json
from moelaws.spec.errors import UserError


def read_verdicts(path: Path) -> JudgedStudy:
    """Reads what `moelaws judge` wrote.

    Raises:
        UserError: for a file that is missing, damaged or holds something else.
    """
    try:
        return TypeAdapter(JudgedStudy).validate_python(read_json(path))
    except ValidationError:
        raise UserError(f"{path} holds no verdicts; `moelaws judge STUDY` writes them") from None


def page(verdicts: Sequence[JudgedStudy], tier: str) -> str:
    """Returns the Markdown of judged studies.

    Args:
        verdicts: of ``judge``, one a study.
        tier: of the grids.
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
        decided = [claim["verdict"] for claim in study["claims"]]
        counts = " | ".join(str(decided.count(verdict)) for verdict in Verdict)
        lines.append(f"| [{study['study']}](#{study['study']}) | {counts} |")
    for study in verdicts:
        runs = basis(study["source"], study.get("runs", ""))
        lines += ["", f"## {study['study']}", "", f"{study['title']}. {runs}"]
        if study["assumed"]:
            lines += ["", f"Assumed: {study['assumed']}"]
        for claim in study["claims"]:
            lines += ["", *_section(claim, Path("figures") / study["study"])]
    return "\n".join(lines) + "\n"


def basis(source: str, runs: str) -> str:
    """Returns where losses come from, in a sentence; ``runs`` is what imported ones are called."""
    if source == "computed":
        return "Computed from the paper's own model; no run is behind it."
    if source == "trained":
        return "From runs trained here."
    if source == "imported" and runs:
        return f"**From {runs}**; none was trained here."
    return f"**From {source.replace('+', ' and ')} data**, not from trainings here alone."


def _section(claim: JudgedClaim, figures: Path) -> list[str]:
    figure = figures / claim["figure"]
    picture = figure.with_suffix(".md" if claim["figure"].startswith("T") else ".png")
    lines = [
        f"### {claim['name'].replace('_', ' ')}: {claim['verdict']}",
        "",
        f"- *Claim* ({claim['source']}): {claim['statement']}",
        f"- *These runs*: {claim['measured']}",
        f"- *Rule*: {claim['rule']}",
    ]
    if claim["needed"]:
        lines.append(f"- *What would decide*: {claim['needed']}")
    return [*lines, f"- *Look at*: [{claim['figure']}]({picture.as_posix()})"]
