"""What a terminal shows of a Snakemake call: a line of progress, warnings, and what failed.

Snakemake's option --quiet shortens the terminal's output and the log alike, and hides the jobs that
fail. Here only the terminal is quiet. Snakemake's events arrive as records of Python's logging, so
this module does not import Snakemake.
"""

import logging
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moelaws.grids.sweep import planned
from moelaws.records.progress import StatusLine, duration, ended_by, last_lines
from moelaws.spec.errors import listed
from moelaws.workflow.trainings import Trainings

if TYPE_CHECKING:
    from moelaws.records.watching import Watching

LAST_LINES = 15  # of a failed job's log
TICK = 1.0  # seconds between two looks at the jobs
EVERY = 5.0  # ... and at the runs
# Beginnings of Snakemake's long messages on a failed job, which is reported here
REPORTED_HERE = (
    "RuleException:\nCalledProcessError",
    "Exiting because a job",
    "Cannot restore",
    "Restored previous version",
)
# In Snakemake's message on a job: the signal that ended its shell, or 128 more: a process of it
ENDED = re.compile(r"(?:<Signals\.\w+: |exit status (?=129|1[345]\d\b))(\d+)")
OWN = "moelaws: "
# Beginnings of messages that are shown though they are no warnings. With the run ID a user finds
# the jobs of a call that was killed.
SHOWN = (OWN, "Nothing to be done", "SLURM run ID")
Event = dict[str, Any]  # the attributes of a record of Snakemake's
FAMILIAR = 3  # the most rules at work that are named
# Seconds of a job of the demo on the core that estimates of trainings are for (docs/demo.md), with
# its share of the time in which the other core waits.
SECONDS = {"place_figure": 0, "place_table": 0, "draw": 27, "contest": 8, "power": 110}
A_JOB = 2.7  # seconds that a job of any other rule is taken to last
WHOLE_CONTEST = 30


class CallReport(logging.Handler):
    """Reports a call from the events that Snakemake logs; shows nothing of a dry run.

    The profile sets ``--quiet rules``, which turns this on. With another --quiet, and with
    --verbose or --printshellcmds, Snakemake also shows its own messages.
    """

    def __init__(
        self,
        logger: logging.Logger,
        settings: Any,
        warning_rules: Collection[str],
        trainings: Trainings | None = None,
        cores: int = 0,
    ) -> None:
        """Takes Snakemake's logger and output settings.

        ``warning_rules`` are the rules whose logs may have warnings that a user should see.
        ``cores`` are those of this machine; 0 where jobs run on a cluster.
        """
        super().__init__()
        self.logger, self.settings, self.warning_rules = logger, settings, warning_rules
        self.trainings, self.cores = trainings, cores
        self.todo: Counter[str] = Counter()  # rule -> how many of its jobs have not ended
        self.watching: Watching | None = None  # None if there is nothing to train
        self.runs: list[str] = []  # their progress at the last look
        self.looked, self.seconds = 0.0, SECONDS
        self.line = StatusLine()
        self.jobs: dict[int, Event] = {}
        self.running: dict[int, str] = {}
        self.failed: dict[int, str] = {}
        self.errors: list[str] = []
        self.done = self.total = 0
        # With --quiet progress, Snakemake logs no end of a job.
        self.counts_jobs = "PROGRESS" not in {value.name for value in settings.quiet or ()}
        self.began = time.monotonic()
        self.stopped = 0  # the signal that ended the call
        self.ended = threading.Event()
        self.follower = threading.Thread(target=self._follow, daemon=True)

    def emit(self, record: logging.LogRecord) -> None:
        take = getattr(self, f"_on_{getattr(record, 'event', None)}", None)
        if take is not None:
            try:
                take(vars(record))
            except Exception:  # like Snakemake's own handler: a message must stop no job
                self.handleError(record)

    def begin(self) -> None:
        if self.trainings and self.trainings.pending:
            from moelaws.records.watching import Watching  # loads pyarrow

            jobs = self.trainings.jobs
            if not jobs.project.short_contests:
                self.seconds = SECONDS | {"contest": WHOLE_CONTEST}
            self.watching = Watching(jobs.results, planned(jobs.sweeps.values(), jobs.project))
            self._look()
        self.follower.start()
        # Snakemake's own handler makes it wait for the jobs at work. Of Ctrl-C it has none.
        self.wind_down: Any = signal.signal(signal.SIGTERM, self._hear)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._hear)

    def end(self, logs: Iterable[str], succeeded: bool) -> None:
        if self.follower.is_alive():
            self.ended.set()
            self.follower.join()
        if self.stopped and not succeeded:
            self.line.clear()
            sys.exit(128 + self.stopped)
        self._look()
        if self.text() != OWN:
            self.line.show(self.text(), last=True)
        took = duration(time.monotonic() - self.began)
        if succeeded:
            self.line.say(f"{OWN}all jobs ({self.total}) are done, in {took}")
            return
        names = list(self.failed.values())
        failed = f"jobs that failed: {len(names)} of {self.total} ({listed(names, 5)})"
        self.line.say(
            f"{OWN}{failed if names else 'the call stopped before its end'}. What was made stays "
            "made: correct the cause and give the same call again. Snakemake's own messages: "
            f"{', '.join(logs) or 'above'}"
        )

    def text(self) -> str:
        names = Counter(list(self.running.values()))  # copied, because another thread changes it
        at_work = [f"{rule} ({n})" if n > 1 else rule for rule, n in names.most_common(FAMILIAR)]
        words = [*self.runs]
        if self.counts_jobs:
            words.append(f"{self.done}/{self.total} jobs")
        if at_work:
            words.append(f"now: {', '.join(at_work)}")
        return OWN + ", ".join(words)

    def _hear(self, number: int, frame: object) -> None:
        """Ends the call after a signal. A terminal's Ctrl-C comes to the local jobs as well."""
        signal.signal(number, signal.SIG_IGN)  # Python cannot raise a second one at any place
        if self.stopped == number:
            return  # a second one came before this line of the first and was heard inside of it
        self.stopped = number
        threading.Thread(target=self._stop).start()  # this thread may hold the locks
        if number == signal.SIGINT and not self.cores:
            sys.exit(128 + number)  # Snakemake cancels the jobs of a cluster

    def _stop(self) -> None:
        name = signal.Signals(self.stopped).name
        self.ended.set()
        self.line.say(
            f"{OWN}interrupted ({name}); the call ends when the jobs at work have ended. What was "
            "made stays made, and the same call goes on from there"
        )
        self.wind_down()

    # ---- events, by their names

    def _on_workflow_started(self, event: Event) -> None:
        """Sets up Snakemake's handlers, which exist by now."""
        chosen = {value.name for value in self.settings.quiet or ()}
        shown = self.settings.verbose or self.settings.printshellcmds
        quiet = not shown and bool({"RULES", "ALL"} & chosen)
        for handler in self.logger.handlers:
            if isinstance(handler, logging.StreamHandler):  # neither this one nor a plugin's
                is_log = isinstance(handler, logging.FileHandler)
                if is_log or shown:
                    handler.filters = []
                elif quiet and not self.settings.dryrun:
                    handler.filters = [self._passes]
        self.line.is_alone = quiet

    def _on_run_info(self, event: Event) -> None:
        counts = dict(event.get("stats", {}))
        self.total = counts.pop("total", 0)
        self.todo = Counter(counts)
        if self.line.is_alone and not self.settings.dryrun:
            each = ", ".join(f"{rule} {n}" for rule, n in counts.items())
            self.line.say(f"{OWN}jobs to do: {self.total} ({each})")
        trainings = [job for job in self.jobs.values() if job["rule_name"] == "train"]
        batches = [dict(job["wildcards"])["batch"] for job in trainings]
        if self.settings.dryrun and self.trainings and batches:
            self.line.say(OWN + self.trainings.words(batches))
            self.jobs.clear()

    def _on_job_info(self, event: Event) -> None:
        self.jobs[event["jobid"]] = event
        if self.counts_jobs:
            self.running[event["jobid"]] = event["rule_name"]

    def _on_progress(self, event: Event) -> None:
        self.done, self.total = event["done"], event["total"]

    def _on_job_finished(self, event: Event) -> None:
        job = event["job_id"]
        self.running.pop(job, None)
        self.failed.pop(job, None)  # it may have failed before and been tried again
        known = self.jobs.pop(job, None)
        self.todo[known["rule_name"] if known else "all"] -= 1
        if known and known["rule_name"] in self.warning_rules:
            for log in known["log"]:
                for line in last_lines(Path(log), 1000):
                    if "warning: " in line:
                        what = ", ".join(dict(known["wildcards"]).values())
                        self.line.say(f"{OWN}{what}: warning: {line.rpartition('warning: ')[2]}")

    def _on_error(self, event: Event) -> None:
        self.errors.append(str(event["msg"]))

    def _on_job_error(self, event: Event) -> None:
        known = self.jobs.get(event["jobid"], event)
        self.running.pop(event["jobid"], None)
        name = " ".join([event["rule_name"], *dict(known.get("wildcards") or {}).values()])
        self.failed[event["jobid"]] = name
        if not self.line.is_alone or self.stopped:
            return  # Snakemake has shown it, or the user stopped it
        # The message of a cluster; a local job has none.
        why = f" ({event['rule_msg'].splitlines()[0]})" if event["rule_msg"] else ""
        errors = [text for text in self.errors if any(log in text for log in event["log"])]
        if ended := ENDED.search("".join(errors[-1:])):
            why = f": it {ended_by(int(ended[1]) % 128)}"
        text = f"{OWN}the job {name} failed{why}"
        logs = [log for log in event["log"] if Path(log).exists()]
        if lines := next(filter(None, (last_lines(Path(log), LAST_LINES) for log in logs)), []):
            text += "; its log ends so:\n" + "\n".join(f"    {line}" for line in lines)
        if logs:
            text += f"\n{OWN}the whole log: {', '.join(logs)}"
        self.line.say(text)

    # ----

    def _passes(self, record: logging.LogRecord) -> bool:
        """Returns whether Snakemake's own handler may show a record beside the line."""
        text = str(record.msg)
        is_error = getattr(record, "event", None) == "job_error"
        if self.stopped or text.startswith(REPORTED_HERE) or is_error:
            return False
        if record.levelno < logging.WARNING and not text.startswith(SHOWN):
            return False
        self.line.clear()
        return True

    def _look(self) -> None:
        if self.watching:
            others = sum(
                n * self.seconds.get(rule, A_JOB)
                for rule, n in self.todo.items()
                if rule != "train"
            )
            snapshot = self.watching.look(self.cores, others)
            self.runs, self.looked = snapshot.words(), time.monotonic()

    def _follow(self) -> None:
        while not self.ended.wait(TICK):
            if time.monotonic() - self.looked >= EVERY:
                self._look()
            if self.text() != OWN:
                self.line.show(self.text())
