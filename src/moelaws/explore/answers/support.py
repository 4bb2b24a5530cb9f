"""What the runs support and what they cannot tell: verdicts, contests of laws, shaky fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from moelaws.claims.base import JudgedStudy, Verdict
from moelaws.claims.contests import read_contest
from moelaws.explore.fits import LossFit
from moelaws.explore.material import Material
from moelaws.explore.studies import verdicts_of
from moelaws.explore.words import answer, listed, table
from moelaws.fitting.scores import ContestScores, SplitScores

BASES = {
    "simulated": " (simulated losses)",
    "imported": " (published runs)",
    "computed": " (computed without runs)",
}


def support(material: Material, fits: Sequence[LossFit]) -> dict[str, Any]:
    """Returns the answer; it says so where nothing is judged yet."""
    heading = "What the runs support and what they cannot tell"
    judged = [each for s in material.studies if (each := verdicts_of(material, s)) is not None]
    paragraphs = list(_verdicts(judged))
    contests = [
        contest
        for study in material.studies
        for entry in study.contests
        if (contest := _contest(material, study.study, entry.name)) is not None
    ]
    points = [line for contest in contests for line in _contest_lines(contest)]
    if contests:
        paragraphs.append(
            "Laws were also compared by how well they predict runs that they were not fitted to. "
            "The list says which one predicts best, and from which others it cannot be told apart. "
            "Refits to runs that are drawn anew predict a little worse than the fit itself."
        )
    shaky = [line for fit in fits if (line := _shaky(fit))]
    if shaky:
        paragraphs.append(
            "The predictions of a fitted law can be good where its coefficients are not known. The "
            "list names such coefficients: do not compare them with published ones."
        )
    if not paragraphs:
        paragraphs.append("Nothing is judged yet: there are neither verdicts nor fits.")
    return answer(heading, paragraphs, [*points, *shaky], _claims_table(judged))


def _contest(material: Material, study: str, name: str) -> ContestScores | None:
    return material.read(read_contest, material.folder.contest(study, name))


def _verdicts(judged: Sequence[JudgedStudy]) -> Iterator[str]:
    claims = [claim for study in judged for claim in study["claims"]]
    if not claims:
        return
    numbers = {v: sum(claim["verdict"] == v for claim in claims) for v in Verdict}
    yield (
        f"Claims of the papers were checked by fixed rules: {numbers[Verdict.SUPPORTED]} of "
        f"{len(claims)} are supported, {numbers[Verdict.NOT_SUPPORTED]} not supported, and for "
        f"{numbers[Verdict.CANNOT_TELL]} the runs cannot tell, being too few, too small or too "
        "noisy. The section of each study has the rule and the numbers."
    )


def _claims_table(judged: Sequence[JudgedStudy]) -> dict[str, Any] | None:
    rows = [
        [
            study["study"] + BASES.get(study["source"], ""),
            claim["statement"],
            claim["verdict"] if claim["verdict"] != Verdict.CANNOT_TELL else "cannot tell",
        ]
        for study in judged
        for claim in study["claims"]
    ]
    return table(("study", "claim", "verdict"), rows, text=3) if rows else None


def _contest_lines(contest: ContestScores) -> Iterator[str]:
    for split in contest["splits"]:
        if split["laws"]:
            yield f"{contest['study']}{BASES.get(contest['source'], '')}: {_split(split)}"


def _split(split: SplitScores) -> str:
    first, *others = split["laws"]
    ends = first.get("rmse_interval") or []
    known = len(ends) == 2 and all(end is not None for end in ends)
    within = f"; {ends[0]:.3f} to {ends[1]:.3f} for refits" if known else ""
    rivals = [law["law"] for law in others if not law.get("told_apart", False)]
    besides = "No other is as good."
    if rivals:
        besides = f"It cannot be told apart from {listed(rivals)}."
    return (
        f"to predict {split['use']}, the law {first['law']} errs least, by {first['rmse']:.3f} "
        f"nats per token (root mean square{within}). {besides}"
    )


def _shaky(fit: LossFit) -> str:
    """Returns what the rows of a fit do not determine, in a sentence; empty where they do."""
    if fit.spec.split_by:
        return ""
    part = fit.report.parts[0]
    known = part.diagnostics
    name = f"{fit.study.study}, fit {fit.spec.name} of the law {fit.law.ref}"
    lost = sorted({*known.unidentified, *known.at_bounds}, key=list(part.params).index)
    if not part.converged:
        return f"{name}: the fit did not converge, so that it should not be used as it is."
    return f"{name}: the runs do not determine {listed(lost)}." if lost else ""
