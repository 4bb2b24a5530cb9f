"""What Snakemake's executor for Slurm lacks where a cluster is not at its best.

The Snakefile mixes ``Patient`` into the executor of snakemake-executor-plugin-slurm, so this module
does not import Snakemake. A controller that is away is waited for. No job asks for more than its
partition has. A job that can never start is told of. A job whose output is there is done, also if
Slurm has forgotten it. A failed job's message ends with what Slurm itself wrote.
"""

import re
import shutil
import subprocess
import threading
import time
from collections.abc import AsyncIterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from moelaws.records.progress import last_lines
from moelaws.spec.errors import UserError

SITE = "profiles/slurm/site.yaml"
AGAIN = 30.0  # seconds between a submission that failed and the next
GONE = 60.0  # seconds after which a job that Slurm does not know has ended
# Reasons of squeue that no waiting ends
NEVER = re.compile(
    "TimeLimit$|NodeLimit$|MaxWall|PerJob|PerNode|BadConstraints|Held|Invalid|NotAllowed|NeverSat"
)
AWAY = re.compile("Unable to contact|Socket timed out|Zero Bytes|standby mode|Connection refused")
# Lines of a job's log that are Slurm's own, or say by which signal a command ended
OWN_LINE = re.compile(r"^(?:slurmstepd|srun|slurmd): (?:error: )?(.*)|died with <Signals\.(SIG\w+)")
BLUR = re.compile(r" Detailed failure.*|\*\*\* ?| ON \S+| AT \d\S+")


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
                "sacct does not answer here, as on a cluster without an accounting database, so no "
                f"end of a job would be seen; leave slurm-status-command out of {SITE}"
            )
        # The executor takes sacct in place of `squeue` where MinJobAge is short, but of nothing else.
        settings.status_command = "squeue alone"


def _answer(*words: str) -> list[str] | None:
    """Returns the lines that a command of Slurm prints, or None if it fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None
    return None if done.returncode else done.stdout.splitlines()


_Executor: Any = object


class Patient(_Executor):  # type: ignore[misc]
    """Methods in front of those of the executor for Slurm."""

    def __init__(self, *arguments: Any) -> None:
        self.stamps: dict[Any, list[int]] = {}  # of each job's outputs when it was submitted
        self.missed: dict[str, float] = {}  # job of Slurm -> when it was first not known
        self.ended: set[str] = set()
        self.told: set[str] = set()
        super().__init__(*arguments)

    def cancel(self) -> None:
        self.wait = False  # what is still to be submitted is not
        super().cancel()

    def run_job(self, job: Any) -> None:
        limits = [self.limits.get(name, ()) for name in self._partitions_of(job)]
        if not self.wait:
            return
        for i, key in enumerate(("runtime", "mem_mb")):
            most = max((limit[i] for limit in limits if limit), default=0)
            if most and most < (job.resources.get(key) or 0):
                setattr(job.resources, key, most)
        self.stamps[job] = _stamps(job)
        for log in job.log:  # an earlier job's would be shown as this one's
            Path(log).unlink(missing_ok=True)
        super().run_job(job)

    @cached_property
    def limits(self) -> dict[str, list[int]]:
        """Returns the most minutes and MB of a job in each partition, 0 for no limit.

        The default partition also has the empty name.
        """
        while (lines := _answer("sinfo", "-heo", "%P|%l|%m")) is None and self.wait:
            self._tell("Slurm's controller does not answer; jobs are submitted when it does")
            time.sleep(AGAIN)
        limits: dict[str, list[int]] = {}
        for name, most, memory in (line.split("|") for line in lines or () if line.count("|") == 2):
            days, _, clock = most.rpartition("-")
            parts = [int(x) for x in clock.split(":") if x.isdigit()]
            hours, minutes = ([0, 0, *parts] if parts else [0, 0, 0])[-3:-1]
            limit = [1440 * int(days or 0) + 60 * hours + minutes, int(re.sub(r"\D", "", memory))]
            for key in (name.rstrip("*"), *[""] * name.endswith("*")):
                known = limits.get(key, limit)
                limits[key] = [max(x, y) for x, y in zip(known, limit, strict=True)]
        return limits

    def _partitions_of(self, job: Any) -> list[str]:
        return str(job.resources.get("slurm_partition") or "").split(",")

    async def check_active_jobs(self, active_jobs: list[Any]) -> AsyncIterator[Any]:
        async for _ in super().check_active_jobs(active_jobs):
            pass  # it yields none of them while the controller is away
        left = [info for info in active_jobs if info.external_jobid not in self.ended]
        form = ("--noheader", "--states=all", "--format=%i|%T|%r")
        lines = _answer("squeue", *form, "--name", self.run_uuid) if left else ()
        queue = {job: rest for job, *rest in (line.split("|") for line in lines or ())}
        for info in left:
            if lines is None or not self._has_ended(info, *queue.get(info.external_jobid, ())):
                yield info

    def _has_ended(self, info: Any, state: str = "", reason: str = "") -> bool:
        """Reports a job that Slurm has forgotten, and tells of one that cannot start."""
        job = info.external_jobid
        if state == "PENDING" and NEVER.search(reason):
            self._tell(
                f"Slurm job {job} ({info.job.name}) cannot start: {reason}; ask for less by "
                f"max_minutes, max_memory or another partition in {SITE}, or see what "
                f"`scontrol show job {job}` says"
            )
        elsewhere = any(info.job.resources.get(x) for x in ("slurm_cluster", "cluster", "clusters"))
        if state not in ("", "PREEMPTED") or elsewhere:
            self.missed.pop(job, None)
            return False
        if not _is_done(info.job, self.stamps) and (
            time.monotonic() - self.missed.setdefault(job, time.monotonic()) < GONE
        ):
            return False
        self.report_job_error(info, f"Slurm job {job} was {state.lower() or 'forgotten by Slurm'}")
        return True

    def report_job_success(self, info: Any) -> None:
        self.ended.add(info.external_jobid)
        super().report_job_success(info)

    def report_job_error(self, info: Any, msg: str | None = None, **more: Any) -> None:
        job, said = info.job, msg or ""
        if info.external_jobid and _is_done(job, self.stamps):
            self.report_job_success(info)
            return
        if info.external_jobid:
            self.ended.add(info.external_jobid)
            log = (info.aux or {}).get("slurm_logfile")
            said = " ".join([BLUR.sub("", said), *_last_words(log)])
        report = partial(super().report_job_error, info, said, **more)
        if not info.external_jobid:
            if AWAY.search(said):
                self._tell("Slurm's controller does not answer; jobs are submitted when it does")
                report = partial(self.run_job, job)
            if AWAY.search(said) or job.attempt <= job.restart_times:
                timer = threading.Timer(AGAIN, report)
                timer.daemon = True
                timer.start()
                return
        report()

    def _tell(self, text: str) -> None:
        """Shows a warning, once."""
        if text not in self.told:
            self.told.add(text)
            self.logger.warning(f"moelaws: warning: {text}")


def _stamps(job: Any) -> list[int]:
    """Returns when each output of a job was last written, 0 for one that is not there."""
    files = (Path(file) for file in job.output)
    return [file.stat().st_mtime_ns if file.exists() else 0 for file in files]


def _is_done(job: Any, before: dict[Any, list[int]]) -> bool:
    """Returns whether all outputs were written since: they are renamed into place when whole."""
    now = _stamps(job)
    return 0 not in now and all(map(int.__ne__, now, before.get(job, now)))


def _last_words(log: Path | None) -> list[str]:
    """Returns what Slurm wrote of a job's end, and the signal that ended its command."""
    found = [OWN_LINE.search(line) for line in (last_lines(log, 100) if log else ())]
    own = [match[1] for match in found if match and match[1]]
    signals = [match[2] for match in found if match and match[2]]
    return [f"It was ended by {signal}." for signal in signals[-1:]] + [
        f"Slurm wrote: {BLUR.sub('', line)}" for line in own[-1:]
    ]
