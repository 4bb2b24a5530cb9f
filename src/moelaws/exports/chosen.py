"""Which runs go to a tracker, each for the studies that ask for it, and what is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moelaws.exports.material import ENDED, NO_STUDY, Asked, TrackedRun
from moelaws.grids.sweep import expand_study
from moelaws.records.layout import Results
from moelaws.records.runs import Record
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, chosen_studies


@dataclass(frozen=True)
class LeftOut:
    """A run on record that is not sent, and why."""

    run_id: str
    reason: str


@dataclass(frozen=True)
class Chosen:
    """The runs to send; one that several studies share stands here once for each of them."""

    runs: list[TrackedRun]
    left_out: list[LeftOut]


def asked_in(project: Project) -> dict[str, list[Asked]]:
    """Returns run -> the chosen studies that ask for it at the project's tier.

    Raises:
        UserError: for a study that is not there, or has no grid for the tier.
    """
    asked: dict[str, list[Asked]] = {}
    for study in chosen_studies(project):
        for run in expand_study(study, project).runs:
            entry = Asked(study.study, project.tier, run.C, run.sweeps)
            asked.setdefault(run.run_id, []).append(entry)
    return asked


def choose(
    records: Iterable[Record],
    results: Results,
    asked: Mapping[str, list[Asked]] | None,
    named: bool = False,
) -> Chosen:
    """Returns the runs among ``records`` that have ended.

    Args:
        asked: run -> the studies that ask for it; None without a project, and then every run is
            sent as one of the study ``moelaws``.
        named: whether the user named the runs: then those that no study asks for go, too.
    """
    runs: list[TrackedRun] = []
    left_out: list[LeftOut] = []
    for record in records:
        studies = (asked or {}).get(record.run_id, [])
        if record.status not in ENDED:
            left_out.append(LeftOut(record.run_id, record.status.replace("_", " ")))
        elif not studies and asked is not None and not named:
            left_out.append(LeftOut(record.run_id, "no chosen study asks for it at this tier"))
        else:
            try:
                each = [TrackedRun.of(record, results, a) for a in studies or [Asked(NO_STUDY)]]
            except UserError as error:
                left_out.append(LeftOut(record.run_id, str(error)))
            else:
                runs += each
    return Chosen(runs, left_out)
