"""What runs really spend when those that differ in length alone share their trunk."""

from collections.abc import Iterable, Mapping, Sequence

from moelaws.spec.run import RunConfig


def shared_steps(
    runs: Iterable[RunConfig], kept: Mapping[str, Sequence[int]] = {}
) -> dict[str, int]:
    """Returns run_id -> the first steps of a run that a shorter run of its trunk trains.

    Runs that share nothing are left out. So are those that have ``kept`` weights on the way, after
    the steps given.
    """
    sharing = (run for run in runs if run.trunk and not kept.get(run.run_id))
    shared: dict[str, int] = {}
    before: dict[str | None, RunConfig] = {}  # the next shorter run of each trunk
    for run in sorted(sharing, key=lambda run: run.steps):
        shorter = before.get(run.trunk, run)
        if shorter.steps < run.steps:
            shared[run.run_id] = min(shorter.branch_step, run.branch_step)
        before[run.trunk] = run
    return shared


def spent(runs: Sequence[RunConfig], kept: Mapping[str, Sequence[int]] = {}) -> Sequence[RunConfig]:
    """Returns each of the ``runs`` with as many steps as it trains itself."""
    if not (shared := shared_steps(runs, kept)):
        return runs
    return [run.of_length(max(1, run.steps - shared.get(run.run_id, 0))) for run in runs]


def apart(runs: Sequence[RunConfig]) -> bool:
    """Tells whether runs of several lengths have no trunk because their rates or batches differ.

    These follow from a law of compute or tokens, say.
    """
    if shared_steps(runs):
        return False
    lengths: dict[str, set[int]] = {}
    for run in runs:
        if run.trunk:
            optimizer = run.optimizer.model_copy(update={"lr": 1.0})
            same = {"optimizer": optimizer, "batch": 1, "balance_group": 1, "steps": 1}
            lengths.setdefault(run.model_copy(update=same).fingerprint(), set()).add(run.steps)
    return any(len(steps) > 1 for steps in lengths.values())
