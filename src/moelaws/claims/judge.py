"""The verdicts on a study's claims: each rule measures, and the claim's expectation decides."""

from collections.abc import Collection, Mapping, Sequence
from math import isnan, nan

import numpy as np
from numpy.typing import ArrayLike

from moelaws.analysis.effect import Effect
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.regression import LEVEL
from moelaws.claims.base import Evidence, JudgedClaim, JudgedStudy, Verdict, clearance, verdict
from moelaws.claims.registration import applying, beside, registered
from moelaws.files.atomic import finite
from moelaws.laws.base import Array
from moelaws.records.code import Entries
from moelaws.records.registration import Registration
from moelaws.records.runs import read_record
from moelaws.spec.errors import listed
from moelaws.spec.readers import Claim
from moelaws.spec.references import resolve
from moelaws.spec.study import Study
from moelaws.spec.words import on_one_line


def judge(
    study: Study,
    inputs: Inputs,
    registrations: Sequence[Registration] = (),
    entries: Entries | None = None,
    rounds: Mapping[str, Collection[str]] = {},
) -> JudgedStudy:
    """Returns the verdicts on the study's claims, all of whose rules must exist, as JSON data.

    With the ``registrations`` of the sweep, today's ``entries``, and the runs that ``rounds`` chose
    by a registered rule, it says how each claim kept to them.
    """
    simulated = study.simulation if "simulated" in inputs.sources else None
    judgment: JudgedStudy = {
        "study": study.study,
        "title": study.title,
        "source": "+".join(inputs.sources) or "computed",
        "runs": study.imported.called if study.imported else "",
        "assumed": on_one_line(simulated.assumed) if simulated else "",
        "claims": [judged(study, claim, inputs) for claim in study.claims],
        "made_of": inputs.made_of(),
    }
    if inputs.stages:
        judgment["stages"] = inputs.stages
    if registrations and inputs.sources == ("trained",):
        table = inputs.table
        records = {run: read_record(inputs.results, run).provenance for run in table["run_id"]}
        made_by = {run: [one, *one.get("resumed_from", [])] for run, one in records.items() if one}
        some = inputs.stages.split(", ") if inputs.stages else ()
        kept = registered(study, entries or {}, table, made_by, registrations, rounds, some)
        for claim in judgment["claims"]:
            claim["registered"] = kept[claim["name"]]
        if holding := applying(registrations, {*table["run_id"]}, some):
            judgment["predicted"] = [
                row for own in holding for row in beside(own, inputs.completed)
            ]
    return judgment


def judged(study: Study, claim: Claim, inputs: Inputs) -> JudgedClaim:
    """Returns the verdict on one ``claim`` of the study, with its evidence, as JSON data.

    Nothing is measured by fits that have as many parameters as rows, for no error of theirs shows.
    """
    rule, declared = resolve(study.home, claim.code), inputs.declared_by(claim)
    if exact := sorted(declared.exact_fits):
        why = f"as many parameters as rows were fitted, so that no error shows, by {listed(exact)}"
        evidence = Evidence(why, needed="more runs behind these fits")
    else:
        evidence = rule(declared, **claim.arguments)
    effect = evidence.effect or Effect(nan)
    decision = verdict(evidence.intervals, claim.expect.above, claim.expect.below)
    clear = clearance(evidence.intervals, claim.expect.above, claim.expect.below)
    shown = _shown(claim, evidence)
    says = {null.name: null.says for null in study.nulls}
    needed = evidence.needed or on_one_line(claim.needed)
    return {
        "name": claim.name,
        "statement": on_one_line(claim.statement),
        "source": claim.source,
        "rule": on_one_line(claim.rule),
        "figure": claim.figure,
        "verdict": decision,
        "measured": evidence.measured,
        "value": finite(effect.value),
        "low": finite(effect.low),
        "high": finite(effect.high),
        "unit": evidence.unit,
        "says": _read_aloud(claim, evidence, decision, *shown),
        "shown": shown,
        "needed": needed if decision is Verdict.CANNOT_TELL else "",
        "null": on_one_line(says.get(claim.null_model, "")),
        "clearance": finite(clear),
    }


_VERB = {
    Verdict.SUPPORTED: "The runs support the claim",
    Verdict.NOT_SUPPORTED: "The runs contradict the claim",
    Verdict.CANNOT_TELL: "The runs cannot tell",
}


def _read_aloud(
    claim: Claim, evidence: Evidence, decision: Verdict, number: str, interval: str
) -> str:
    """Returns the verdict, the number it rests on and the reason in one sentence."""
    if not number:
        return f"{_VERB[decision]}: {evidence.measured.rstrip('.')}."
    ends = {"more than": claim.expect.above, "less than": claim.expect.below}
    expected = [f"{word} {_read(claim, x):.3g}" for word, x in ends.items() if x is not None]
    why = f"and the claim expects {' and '.join(expected)}"
    if decision is Verdict.CANNOT_TELL:
        why += ", but " + (
            "what decides has values for and against that" if interval else "there is no interval"
        )
    all_values = claim.measure is not None and claim.measure.rule == "bound"
    of = "range" if all_values else f"{100 * LEVEL:.0f} % interval"
    known = f"{number} ({of}: {interval})" if interval else number
    return f"{_VERB[decision]}: {claim.reads.says.replace('{effect}', known)}, {why}."


def _shown(claim: Claim, evidence: Evidence) -> tuple[str, str]:
    """Returns the number of a claim with its unit, and its interval; empty where there is none."""
    if evidence.effect is None or isnan(evidence.effect.value):
        return "", ""
    value, low, high = evidence.effect.map(lambda x: _read(claim, x)).interval
    unit = "%" if claim.reads.percent else claim.reads.unit or evidence.unit
    interval = "" if isnan(low) or isnan(high) else f"{low:.3g} to {high:.3g}"
    return f"{value:.3g} {unit}".strip(), interval


def _read(claim: Claim, number: ArrayLike) -> Array:
    """Returns a number (...) of the claim as a sentence has it."""
    scaled = claim.reads.factor * np.asarray(number, float)
    with np.errstate(over="ignore"):
        return np.asarray(100 * np.expm1(scaled) if claim.reads.percent else scaled)
