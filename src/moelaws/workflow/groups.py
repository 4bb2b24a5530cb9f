"""What Snakemake's groups lack for packs of runs that nothing but their job connects."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

PACKS = "packs"  # the group of which all packs are parts, to Snakemake


class Groups(logging.Handler):
    """Makes Snakemake's groups fit for packs, where it runs jobs on a cluster or in one's job.

    To Snakemake, runs that no file connects are groups of their own, unless an option says how many
    make one; jobs on the cluster never get that option. There too a run that fails would keep
    others from starting; and all that a group made would be removed where one of its jobs fails.
    """

    def __init__(self, workflow: Any) -> None:
        super().__init__()
        self.workflow = workflow

    def emit(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", None)
        try:
            if event == "workflow_started":
                self._complete_settings()
            elif event == "group_error":
                self._keep_what_is_made(vars(record)["job_error_info"])
        except Exception:  # as Snakemake's own handler does: a message stops no job
            self.handleError(record)

    def _complete_settings(self) -> None:
        """Is done once Snakemake has its settings, and before it makes groups of the jobs."""
        groups = self.workflow.group_settings
        groups.group_components = {PACKS: 10**6, **groups.group_components}
        if self.workflow.remote_exec:
            self.workflow.execution_settings.keep_going = True
            # The limit of jobs a second spares clusters; in a job it would only cost time.
            self.workflow.scheduling_settings.max_jobs_per_timespan = None

    def _keep_what_is_made(self, jobs: Iterable[Mapping[str, Any]]) -> None:
        """Copies outputs that are there: of those that jobs update, Snakemake brings copies back
        after a failure, and removes the others."""
        for job in jobs:
            for output in filter(is_made, job["output"]):
                self.workflow.persistence.backup_output(path_of(output))


def with_reason(log_error: Callable[..., None], logger: logging.Logger) -> Callable[..., None]:
    """Returns Snakemake's ``GroupJob.log_error`` with the cluster's reason, which it leaves out."""

    def log(group: Any, msg: str | None = None, **more: Any) -> None:
        if msg:
            logger.warning(f"moelaws: {group.groupid}: {msg.splitlines()[0]}")
        log_error(group, msg, **more)

    return log


def is_made(output: str) -> bool:
    """Whether an output is there, by the text that Snakemake's messages have of it."""
    return path_of(output).exists()


def path_of(output: str) -> Path:
    """Returns the path in such a text, which names flags too: ``a/b.json (update)``."""
    return Path(output.partition(" (")[0])
