"""How ``moelaws watch`` shows a sweep: a drawing for a terminal, a line for a log, JSON."""

from itertools import islice
from typing import Any

from rich.text import Text

from moelaws.cli.answers import table_text
from moelaws.cli.project import snakemake_call
from moelaws.records.progress import duration
from moelaws.records.watching import Course, Snapshot
from moelaws.spec.project import Project
from moelaws.spec.words import visible

SHOWN = 16  # rows of a table
BARS = "▁▂▃▄▅▆▇█"
BAR_WIDTH = 30  # of the FLOPs
# What a run measures comes first: a narrow terminal cuts the end of each line.
RUNNING = ("run", "step", "loss", "lately", "tokens/s", "left", "name", "study", "where")


def idle(project: Project) -> str:
    """Returns what to do when runs are left and no trainer is at work."""
    return (
        "No trainer is at work now. Unless a call of snakemake is about to start one, this trains "
        f"what is left: {snakemake_call(project)}"
    )


def drawn(snapshot: Snapshot, project: Project) -> Text:
    """Returns the drawing of a sweep: totals, then the runs at work, stopped and failed."""
    full = round(BAR_WIDTH * snapshot.fraction_done)
    lines = ["█" * full + "░" * (BAR_WIDTH - full), ", ".join(snapshot.words())]
    if running := snapshot.of("running"):
        lines += ["", _running(snapshot, running), *_more(running)]
    if stopped := snapshot.of("interrupted"):
        lines += ["", "Stopped before their end; the next call of snakemake resumes them:"]
        lines += [_reasons(stopped, snapshot), *_more(stopped)]
    if failed := snapshot.of("failed"):
        lines += ["", "Failed; `moelaws runs --retry` has them trained again:"]
        lines += [_reasons(failed, snapshot), *_more(failed)]
    if snapshot.finished:
        lines += ["", "All runs are over. `moelaws runs` lists them."]
    elif not running:
        lines += ["", idle(project)]
    # As a text: a host or a study of one's own may have a name that looks like markup.
    return Text.assemble((f"Sweep of tier {project.tier}\n", "bold"), visible("\n".join(lines)))


def as_dict(snapshot: Snapshot, tier: str) -> dict[str, Any]:
    """Returns the sweep's numbers; ``runs`` has those that are running, interrupted or failed."""
    shown = snapshot.of("running", "interrupted", "failed")
    return {
        "tier": tier,
        "finished": snapshot.finished,
        "runs_asked": len(snapshot.planned),
        "counts": snapshot.counts,
        "flops": snapshot.total_flops,
        "flops_left": snapshot.flops_left,
        "seconds_left": snapshot.seconds_left,
        "runs": [
            {"run_id": run, **vars(snapshot.planned[run]), "steps_done": course.step}
            | {key: value for key, value in vars(course).items() if key != "step"}
            for run, course in shown.items()
        ],
    }


def sparkline(values: tuple[float, ...]) -> str:
    """Returns numbers as a row of bars, from the lowest bar to the highest one."""
    if not values:
        return ""
    low, span = min(values), max(values) - min(values)
    steps = [round((value - low) / span * (len(BARS) - 1)) if span else 0 for value in values]
    return "".join(BARS[step] for step in steps)


def _running(snapshot: Snapshot, running: dict[str, Course]) -> str:
    """Returns the table of the runs at work."""
    rows = []
    for run, course in islice(running.items(), SHOWN):
        planned = snapshot.planned[run]
        pace, left = course.tokens_per_second, course.seconds_left
        where = [course.device, course.host, f"job {course.job}" if course.job else ""]
        cells = [
            run[:8],
            f"{course.step}/{planned.steps}" if course.step else "begins",
            "-" if course.loss is None else f"{course.loss:.4f}",
            sparkline(course.losses),
            "-" if pace is None else f"{pace:,.0f}",
            "-" if left is None else duration(left),
            planned.name,
            ", ".join(planned.studies),
            " ".join(word for word in where if word),
        ]
        rows.append(cells)
    return table_text(RUNNING, rows, cut=True)


def _reasons(runs: dict[str, Course], snapshot: Snapshot) -> str:
    rows = []
    for run, course in islice(runs.items(), SHOWN):
        planned = snapshot.planned[run]
        step = f"{course.step}/{planned.steps}"
        rows.append((run[:8], planned.name, ", ".join(planned.studies), step, course.reason))
    return table_text(("run", "name", "study", "step", "what is known"), rows)


def _more(runs: dict[str, Course]) -> list[str]:
    hidden = len(runs) - SHOWN
    return [f"and {hidden} more (--once --json lists all)"] if hidden > 0 else []
