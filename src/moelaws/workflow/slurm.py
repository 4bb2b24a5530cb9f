"""What Snakemake's executor for Slurm lacks where a cluster is not at its best.

The Snakefile puts ``Patient`` in front of the executor of snakemake-executor-plugin-slurm, so this
module does not import Snakemake.
"""

import math
import re
import shutil
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import cached_property
from operator import mul, ne
from pathlib import Path
from typing import Any

from moelaws.records.progress import ended_by, last_lines
from moelaws.spec.errors import UserError

SITE = "profiles/slurm/site.yaml"
SITE_LIMITS = ("max_minutes", "max_memory")  # keys of it that are the project's, not Snakemake's
AGAIN = 30.0  # seconds between a submission that failed and the next
GONE = 60.0  # seconds after which a job that Slurm does not know has ended
# Reasons of squeue that no waiting ends
NEVER = re.compile(
    "TimeLimit$|NodeLimit$|MaxWall|PerJob|PerNode|BadConstraints|H[eo]ld|Invalid|NotAllowed|NeverSat"
)
AWAY = re.compile("Unable to contact|Socket timed out|Zero Bytes|standby mode|Connection refused")
OWN_LINE = re.compile(r"^(?:slurmstepd|srun)\S*: error: (?!.* exit code \d)(.*)")  # Slurm's own
DIED = re.compile(r"died with <Signals\.\w+: (\d+)>|ExitCode=\d+:([1-9]\d*)")  # by a signal


def check(settings: Any) -> None:
    """Refuses a call that would wait for ever, by the executor's settings."""
    missing = [name for name in ("sbatch", "squeue", "sacct") if not shutil.which(name)]
    if missing:
        raise UserError(
            f"{' and '.join(missing)} of Slurm cannot be found here; call Snakemake on a node that "
            "submits jobs, or leave out --profile slurm to run on this machine"
        )
    if _answer("sacct", "--noheader", "--allocations", "--jobs=1") is None:
        if settings.status_command == "sacct":
            raise UserError(
                "sacct does not answer, as on a cluster without an accounting database, so no end "
                f"of a job would be seen; leave slurm-status-command out of {SITE}"
            )
        # If MinJobAge is short, the executor takes sacct in place of "squeue", but of nothing else.
        settings.status_command = "squeue alone"


def _answer(*words: str) -> str | None:
    """Returns what a command of Slurm prints, or None if it fails."""
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        return None if done.returncode else done.stdout
    return None


_Executor: Any = object


class Patient(_Executor):  # type: ignore[misc]
    """Methods in front of those of the executor for Slurm."""

    def __init__(self, *arguments: Any) -> None:
        self.stopped = threading.Event()
        # The time stamps of each job's outputs when it was submitted.
        self.stamps: dict[Any, list[int]] = {}
        self.missed: dict[str, float] = {}  # Slurm's job -> when it was first not known
        self.ended: set[str] = set()
        self.told: set[str] = set()
        super().__init__(*arguments)

    def cancel(self) -> None:
        self.stopped.set()
        super().cancel()

    def run_job(self, job: Any) -> None:
        if not self.stopped.is_set():
            super().run_job(job)

    def run_job_pre(self, job: Any) -> None:
        """Prepares a job, which asks for no more than its partition has."""
        names = str(job.resources.get("slurm_partition") or "").split(",")
        limits = [limit for name in names for limit in self.limits[name]]
        for key, *most in zip(("runtime", "mem_mb"), *limits, strict=True):
            if most and max(most) < (job.resources.get(key) or 0):
                setattr(job.resources, key, max(most))
        self.stamps[job] = _stamps(job)
        for log in getattr(job, "log", ()):  # an earlier job's would be shown as this one's
            with suppress(OSError):
                Path(log).unlink()
        super().run_job_pre(job)

    @cached_property
    def limits(self) -> dict[str, list[tuple[float, float]]]:
        """Returns the most minutes and MB of a job on each kind of node of a partition.

        The default partition also has the empty name.
        """
        while (text := _answer("sinfo", "-heo", "%P|%l|%m")) is None:
            self._tell_away()
            if self.stopped.wait(AGAIN):
                break
        limits: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for name, star, clock, memory in re.findall(r"(\S+?)(\*?)\|(.*)\|(\d+)", text or ""):
            numbers = map(int, reversed(re.findall(r"\d+", clock)))  # days-hours:minutes:seconds
            minutes = sum(map(mul, numbers, (0, 1, 60, 1440))) or math.inf
            for key in {name, name if not star else ""}:
                limits[key].append((minutes, int(memory)))
        return limits

    async def check_active_jobs(self, active_jobs: list[Any]) -> AsyncIterator[Any]:
        """Yields the jobs that have not ended."""
        async for _ in super().check_active_jobs(active_jobs):
            pass  # while the controller is away it yields none of them
        form = ("--noheader", "--array", "--states=all", "--format=%i|%T|%r")
        text = _answer("squeue", *form, "--name", self.run_uuid) if active_jobs else ""
        queue = {job: rest for job, *rest in re.findall(r"(.+?)\|(\w+)\|?(.*)", text or "")}
        for info in active_jobs:
            job = info.external_jobid
            if job not in self.ended and not (
                text is not None and self._has_ended(info, *queue.get(job, ("", "")))
            ):
                yield info

    def _has_ended(self, info: Any, state: str, reason: str) -> bool:
        """Reports a job that Slurm has forgotten, and tells of one that cannot start."""
        job, resources = info.external_jobid, info.job.resources
        if state == "PENDING" and NEVER.search(reason):
            self._tell(
                f"Slurm job {job} ({info.job.name}) cannot start: {reason}; ask for less by "
                f"max_minutes, max_memory or another partition in {SITE}, or see what "
                f"`scontrol show job {job}` says"
            )
        elsewhere = any(map(resources.get, ("slurm_cluster", "cluster", "clusters")))
        if state not in ("", "PREEMPTED") or elsewhere:
            self.missed.pop(job, None)
            return False
        since = self.missed.setdefault(job, time.monotonic())
        if time.monotonic() - since < GONE and not self._is_done(info.job):
            return False
        self.report_job_error(info, f"Slurm job {job} was {state.lower() or 'forgotten by Slurm'}.")
        return True

    def _is_done(self, job: Any) -> bool:
        """Returns whether all outputs were written since: each is whole once it has its name."""
        now = _stamps(job)
        return 0 not in now and all(map(ne, now, self.stamps[job]))

    def report_job_success(self, info: Any) -> None:
        self.ended.add(info.external_jobid)
        super().report_job_success(info)

    def report_job_error(self, info: Any, msg: str = "", **more: Any) -> Any:
        """Reports a job that failed, unless its outputs are there or Slurm was away.

        It waits if sbatch refused the job and there is another attempt.
        """
        job, slurm_job = info.job, info.external_jobid
        if slurm_job is None:
            if away := AWAY.search(msg):
                self._tell_away()
            if away or job.attempt <= job.restart_times:
                self.stopped.wait(AGAIN)
            if away and not self.stopped.is_set():
                return self.run_jobs([job])
        elif self._is_done(job):
            return self.report_job_success(info)
        else:
            self.ended.add(slurm_job)
            msg += _last_words(slurm_job, (info.aux or {}).get("slurm_logfile"))
        return super().report_job_error(info, msg, **more)

    def _tell_away(self) -> None:
        self._tell("Slurm's controller does not answer; jobs are submitted when it does")

    def _tell(self, text: str) -> None:
        """Shows a warning, once."""
        if text not in self.told:
            self.told.add(text)
            self.logger.warning(f"moelaws: warning: {text}")


def _stamps(job: Any) -> list[int]:
    """Returns when each output of a job was last written, 0 for one that is not there."""
    files = map(Path, job.output)
    return [file.stat().st_mtime_ns if file.exists() else 0 for file in files]


def _last_words(job: str, log: Path | None) -> str:
    """Returns which signal ended a job, and the last line that Slurm itself wrote of it."""
    lines = last_lines(log, 100) if log else []
    own = [match[1] for match in map(OWN_LINE.match, lines) if match]
    about = _answer("scontrol", "--oneliner", "show", "job", job) or ""
    died = [x or y for x, y in DIED.findall("\n".join([about, *lines]))]
    words = [f" It {ended_by(int(number))}." for number in died[-1:]]
    return "".join([*words, *(f" Slurm wrote: {line}." for line in own[-1:]), "\n"])
