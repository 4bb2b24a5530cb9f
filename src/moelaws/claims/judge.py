"""The verdicts on a study's claims: each rule measures, and the claim's expectation decides."""

from math import nan

from moelaws.analysis.effect import Effect
from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Evidence, JudgedClaim, JudgedStudy, Verdict, clearance, verdict
from moelaws.files.atomic import finite
from moelaws.spec.errors import listed
from moelaws.spec.readers import Claim
from moelaws.spec.references import resolve
from moelaws.spec.study import Study


def judge(study: Study, inputs: Inputs) -> JudgedStudy:
    """Returns the verdicts on the study's claims, all of whose rules must exist, as JSON data."""
    simulated = study.simulation if "simulated" in inputs.sources else None
    return {
        "study": study.study,
        "title": study.title,
        "source": "+".join(inputs.sources) or "computed",
        "runs": study.imported.called if study.imported else "",
        "assumed": " ".join(simulated.assumed.split()) if simulated else "",
        "claims": [judged(study, claim, inputs) for claim in study.claims],
        "made_of": inputs.made_of(),
    }


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
    says = {null.name: null.says for null in study.nulls}
    needed = evidence.needed or " ".join(claim.needed.split())
    return {
        "name": claim.name,
        "statement": " ".join(claim.statement.split()),
        "source": claim.source,
        "rule": " ".join(claim.rule.split()),
        "figure": claim.figure,
        "verdict": decision,
        "measured": evidence.measured,
        "value": finite(effect.value),
        "low": finite(effect.low),
        "high": finite(effect.high),
        "unit": evidence.unit,
        "needed": needed if decision is Verdict.CANNOT_TELL else "",
        "null": " ".join(says.get(claim.null_model, "").split()),
        "clearance": finite(clear),
    }
