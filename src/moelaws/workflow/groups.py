"""What Snakemake's groups lack for packs of runs that nothing but their job connects."""

from __future__ import annotations

import logging
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
        if event == "workflow_started":  # the settings are there, and the jobs not yet
            groups = self.workflow.group_settings
            groups.group_components = {PACKS: 10**6, **groups.group_components}
            if self.workflow.remote_exec:
                self.workflow.execution_settings.keep_going = True
        elif event == "group_error":
            # Of an output that jobs update, Snakemake brings the last copy back after a failure.
            for job in vars(record)["job_error_info"]:
                for output in filter(is_made, job["output"]):
                    self.workflow.persistence.backup_output(path_of(output))


def is_made(output: str) -> bool:
    """Whether an output is there, by the text that Snakemake's messages have of it."""
    return path_of(output).exists()


def path_of(output: str) -> Path:
    """Returns the path in such a text, which names flags too: ``a/b.json (update)``."""
    return Path(output.partition(" (")[0])
