"""What of a study can be made here, where tables that it reads may not be imported; light."""

from pathlib import Path

from moelaws.files.layout import Results, TierFolder
from moelaws.spec.fit import Fit
from moelaws.spec.grid import Stages
from moelaws.spec.project import Project
from moelaws.spec.study import KINDS, Study, sweep_of
from moelaws.spec.tier import Tier

FOLDER = Path("config/imports")  # of the register's mappings


def imported_files(study: Study) -> dict[Path, Path]:
    """Returns table -> mapping of a study's imported runs; those of the register may be absent."""
    if (own := study.imported) is None:
        return {}
    if own.names:
        return {Results().imported(name): FOLDER / f"{name}.yaml" for name in own.names}
    return {study.shipped(own.table): study.shipped(own.mapping)}


def lacks_first(study: Study) -> str:
    """Returns why a study of the register cannot be made here; empty if it can."""
    first = next(iter(imported_files(study)), None)
    if first is None or first.is_file():
        return ""
    return f"study {study.study}: {first} is not here; run moelaws import {first.stem}"


def at_hand(study: Study, tier: Tier, stages: Stages = "all") -> Study:
    """Returns the study at ``tier`` without entries whose table of the register is absent."""
    if lacks_first(study):
        return study.model_copy(update=dict.fromkeys(KINDS, ()))
    return study.at_tier(tier, stages).without(absent(study))


def as_made(study: Study, project: Project) -> Study:
    """Returns the study with the entries that the workflow makes for ``project``."""
    left = at_hand(study, project.tier, project.stages)
    if project.source == "simulated":
        left = left.of_simulated()
    return left.with_short_contests() if project.short_contests else left


def fitted_table(study: Study, fit: Fit, folder: TierFolder) -> Path:
    """Returns the table of a fit: the study's, a derived one or another fit's estimates."""
    if not fit.table:
        return folder.table(study.study)
    of_fit = fit.table in {other.name for other in study.fits}
    return (folder.fit if of_fit else folder.derived)(study.study, fit.table)


def absent(study: Study) -> list[str]:
    """Returns the names of the register that a study reads and that are not imported here."""
    return [path.stem for path in imported_files(study) if not path.is_file()]


def left_out(whole: Study, project: Project) -> list[str]:
    """Returns a sentence on the entries that the tier cannot make, or none if it can make all."""
    tier, stages = project.tier, project.stages
    left = at_hand(whole, tier, stages)
    entries = {e.name: e for e in (*whole.fits, *whole.contests, *whole.readers)}
    lost = entries.keys() - {e.name for e in (*left.fits, *left.contests, *left.readers)}
    if not lost:
        return []
    sweeps = sorted({sweep_of(entries[name]) for name in lost} & whole.lacking(tier, stages))
    if sweeps:
        which = "" if stages == "all" else f", stages {', '.join(stages)},"
        why = f"the tier {tier}{which} has no sweep {', '.join(sweeps)}"
    elif names := absent(whole):
        why = f"of the register {', '.join(names)} are not here (moelaws import NAME)"
    elif needed := {s for name in lost for s in whole.unchosen(entries[name], tier, stages)}:
        why = f"the stages {', '.join(sorted(needed))} of the tier {tier} are not chosen"
    else:
        why = f"the tier {tier} keeps no weights (keep_weights) or measures no speeds (speed)"
    return [f"{whole.study}: {why}, so these are left out: {', '.join(sorted(lost))}"]
