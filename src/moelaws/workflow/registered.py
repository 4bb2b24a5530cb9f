"""Which runs still to train no registration fixed beforehand (``preregistered: required``)."""

from collections.abc import Mapping

from moelaws.files.layout import Results
from moelaws.grids.sweep import Sweep
from moelaws.records.registration import committed
from moelaws.spec.words import counted


def unregistered(sweeps: Mapping[str, Sweep], tier: str, results: Results) -> str:
    """Returns that runs of a study are in no registration that a commit has; empty if all are."""
    for study, sweep in sweeps.items():
        known = {run for own in committed(study, tier) for run in own.runs}
        waiting = {r.run_id for r in sweep.runs if not results.summary(r.run_id).exists()}
        if missing := sorted(waiting - known):
            return (
                f"{counted(len(missing), 'run')} of {study} are in no registration that a commit "
                f"has ({', '.join(missing[:4])}), and config.yaml says preregistered: required; "
                f"`moelaws preregister {study}` first, and commit its file"
            )
    return ""
