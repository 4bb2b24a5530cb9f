"""The progress of a sweep, read from its files alone.

It needs neither Snakemake, nor Slurm, nor a trainer. So whoever can read the folder can watch, from
any node, while runs train and afterwards.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from moelaws.files.layout import Results
from moelaws.files.lock import file_system_time, holder
from moelaws.files.parquet import read_origin, read_parquet
from moelaws.records.progress import duration, last_lines
from moelaws.records.summary import read_summary
from moelaws.spec.errors import UserError
from moelaws.spec.words import counted

State = Literal["done", "running", "failed", "interrupted", "waiting"]
STATES: tuple[State, ...] = get_args(State)
SHOWN = ["step", "tokens", "seconds", "loss"]  # columns of a history
OUT_OF_MEMORY = "it ran out of memory"
REASONS = {"diverged": "its loss diverged", "out_of_memory": OUT_OF_MEMORY}


@dataclass(frozen=True)
class Planned:
    """A run that a sweep asks for."""

    name: str
    studies: tuple[str, ...]
    flops: float  # of its training
    steps: int
    parameters: int
    active_parameters: int
    estimated_seconds: float


@dataclass(frozen=True)
class Course:
    """The progress of one run; what is unknown is None or empty."""

    state: State
    reason: str = ""  # why it failed or where it stopped
    step: int = 0  # the steps in its history or its summary
    seconds: float = 0.0  # spent on these steps; for a run that is over, also on its evaluation
    loss: float | None = None  # the training loss at the last step; once done, the validation loss
    tokens_per_second: float | None = None  # the speed of the later half of its steps
    seconds_left: float | None = None  # what is left takes so long at that speed
    device: str = ""
    host: str = ""
    job: str = ""
    started: str = ""  # when the process that trains it began


@dataclass(frozen=True)
class Snapshot:
    """A sweep at one moment: the planned runs and the progress of each, by id."""

    planned: Mapping[str, Planned]
    courses: Mapping[str, Course]
    cores: int = 0  # how many jobs are at work at a time; 0: as many as train now
    others: float = 0.0  # estimated seconds of the jobs beside trainings that are still to do

    @property
    def counts(self) -> dict[State, int]:
        """Returns how many runs are in each state."""
        counts = Counter(course.state for course in self.courses.values())
        return {state: counts[state] for state in STATES}

    def of(self, *states: State) -> dict[str, Course]:
        return {run: course for run, course in self.courses.items() if course.state in states}

    @property
    def finished(self) -> bool:
        """Returns whether nothing is left to train: each run is done or failed."""
        return not self.of("running", "interrupted", "waiting")

    @property
    def total_flops(self) -> float:
        return sum(run.flops for run in self.planned.values())

    @property
    def flops_left(self) -> float:
        """Returns the training FLOPs of the remaining steps."""
        return sum(
            self.planned[run].flops * (1 - self._fraction(run))
            for run in self.of("running", "interrupted", "waiting")
        )

    @property
    def fraction_done(self) -> float:
        """Returns the fraction of the training FLOPs that is done, 0 to 1."""
        return 1 - self.flops_left / self.total_flops if self.total_flops else 1.0

    @property
    def seconds_left(self) -> float | None:
        """Returns the time that the sweep and ``others`` still take; None if nothing is at work.

        It goes by the estimates of all runs, corrected by the runs that are done. Small runs train
        at fewer FLOPs a second, so that a mean speed would mislead.
        """
        running = self.of("running")
        at_once = self.cores or len(running)
        if not at_once:
            return None
        estimates = {run: planned.estimated_seconds for run, planned in self.planned.items()}
        done = self.of("done")
        took, expected = sum(c.seconds for c in done.values()), sum(estimates[run] for run in done)
        ratio = took / expected if done else 1.0
        todo = self.of("running", "interrupted", "waiting")
        left = self.others + sum(estimates[run] * (1 - self._fraction(run)) for run in todo)
        # The sweep takes at least as long as any run still takes at its own pace.
        longest = max((c.seconds_left or 0.0 for c in running.values()), default=0.0)
        return max(left * ratio / at_once, longest)

    def _fraction(self, run: str) -> float:
        """Returns the fraction of the run's steps that are done."""
        return min(1.0, self.courses[run].step / self.planned[run].steps)

    def words(self) -> list[str]:
        """Returns the sweep in words: runs by state, fraction of the FLOPs, time left."""
        words = [f"{self.counts['done']} of {counted(len(self.planned), 'run')} done"]
        words += [f"{n} {state}" for state, n in self.counts.items() if n and state != "done"]
        words.append(f"{self.fraction_done:.0%} of the FLOPs")
        if left := self.seconds_left:
            words.append(f"about {duration(left)} left")
        return words


@dataclass
class Watching:
    """Looks at the runs of a sweep repeatedly; it reads a file again only if that changed."""

    results: Results
    planned: Mapping[str, Planned]
    _known: dict[Path, tuple[int, Course | None]] = field(default_factory=dict)

    def look(self, cores: int = 0, others: float = 0.0) -> Snapshot:
        folders = self.results.runs
        begun = {path.name for path in folders.iterdir()} if folders.is_dir() else set()
        now = file_system_time(folders) if begun else 0.0
        courses = {
            run: self._course(run, now) if run in begun else Course("waiting")
            for run in self.planned
        }
        return Snapshot(self.planned, courses, cores, others)

    def _course(self, run: str, now: float) -> Course:
        over = self._read(self.results.summary(run), _ended)
        if over is not None and over.reason != OUT_OF_MEMORY:
            return over
        folder, steps = self.results.run(run), self.planned[run].steps
        owner = holder(folder, now=now)
        # It reads the summary once more, which may have been written before the lock was freed.
        if not owner and (over := self._read(self.results.summary(run), _ended)):
            return over
        course = self._read(self.results.history_so_far(run), lambda path: _under_way(path, steps))
        course = course or Course("running")
        if owner:
            host, job = str(owner.get("host", "")), str(owner.get("job", ""))
            return replace(course, host=host, job=job)
        if not (folder / "config.json").exists():  # the trainer has not begun
            return Course("waiting")
        reason = "".join(last_lines(folder / "log", 1)).strip().removeprefix(f"{run}: ")
        return replace(course, state="interrupted", reason=reason, seconds_left=None)

    def _read(self, path: Path, read: Callable[[Path], Course | None]) -> Course | None:
        """Returns what ``read`` makes of a file, or None if the file does not exist."""
        try:
            time = path.stat().st_mtime_ns
        except OSError:
            return None
        if path not in self._known or self._known[path][0] != time:
            self._known[path] = time, read(path)
        return self._known[path][1]


def _ended(path: Path) -> Course | None:
    """Returns the course of a run that is over, by its summary; None if that is gone by now."""
    try:
        summary = read_summary(path)
    except UserError:
        damaged = Course("failed", reason="its summary.json is damaged")
        return damaged if path.exists() else None
    seconds, pace = summary.wall_seconds - summary.shared_seconds, summary.tokens_per_second
    over = Course("done", step=summary.steps, seconds=seconds, tokens_per_second=pace)
    if summary.status == "completed":
        return replace(over, loss=summary.loss)
    return replace(over, state="failed", reason=REASONS[summary.status])


def _under_way(path: Path, steps: int) -> Course | None:
    """Returns the course of a run that trains, by its history; None if that cannot be read."""
    try:
        table, origin = read_parquet(path).select(SHOWN), read_origin(path)
    except (UserError, KeyError):  # the run just ended, or this is another kind of file
        return None
    device, host, started = (str(origin.get(key, "")) for key in ("device", "host", "started"))
    begun = Course("running", device=device, host=host, started=started)
    if not table.num_rows:
        return begun
    step, tokens, seconds, loss = (column.to_numpy() for column in table.columns)
    late = len(step) // 2 if len(step) > 2 else 0
    passed = seconds[-1] - seconds[late]
    left = pace = None
    if passed > 0:
        pace = float((tokens[-1] - tokens[late]) / passed)
        left = float((steps - step[-1]) * passed / (step[-1] - step[late]))
    return replace(
        begun,
        step=int(step[-1]),
        seconds=float(seconds[-1]),
        loss=float(loss[-1]) if math.isfinite(loss[-1]) else None,
        tokens_per_second=pace,
        seconds_left=left,
    )
