"""What a command comes to on hostile files: the same answer, one clear line, or a defect."""

import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SECONDS = 30  # of a processor's time: what takes longer hangs, however busy the machine is
# The slow suite takes a case or a few of each test; `make hostile` sets 1,000, for all counts.
CASES = int(os.environ.get("MOELAWS_HOSTILE", "12"))
SEED = os.environ.get("MOELAWS_HOSTILE_SEED", "0")  # of all choices; a failure names its own

# How the commands that show a run, a chain or a report tell in their JSON of what is not whole.
DAMAGE_REPORTS = (
    *('"status": "damaged"', '"state": "damaged"', '"state": "changed"'),
    *('"state": "unverified"', '"unverified": 1', "Left out: "),
)

# Over all tests of one call, for the last lines of pytest's report.
TALLY: Counter[str] = Counter()


def cases(few: int, of_a_thousand: int) -> int:
    """How many cases a test takes: ``few``, or its part where all counts are asked for."""
    return few if CASES < 100 else max(few, CASES * of_a_thousand // 1000)


def chance_of(*about: object) -> random.Random:
    """The same choices again in each call with the same seed."""
    return random.Random(f"{about} {SEED}")


@dataclass(frozen=True)
class Outcome:
    """How a process ended, and what it wrote."""

    code: int  # of a signal, its number with a minus sign
    stdout: str
    stderr: str

    def kind(self, expected: str | None) -> str:
        """Names the outcome; ``expected`` is the answer from whole files, None if any will do."""
        if self.code in (-signal.SIGXCPU, -signal.SIGALRM):
            return "hang"
        if "Warning: " in self.stderr:  # Python's own, of which no user makes sense
            return "traceback"
        if self.code == 0 and expected in (None, self.stdout):
            return "same" if expected else "answered"
        if self.code == 0:
            is_reported = any(word in self.stdout for word in DAMAGE_REPORTS)
            return "refused" if is_reported else "another answer"
        said = (line for line in self.stderr.splitlines() if "warning: " not in line)
        lines = [line for line in said if not re.search(r": \d+/\d+$", line)]  # less progress
        # Of several mistakes each has a line.
        clear = self.code == 2 and 0 < len(lines) < 12 and lines[0].startswith("moelaws: ")
        # Runs of a batch that failed, and perhaps behind them what ended the batch
        last = {1: "", 2: "moelaws: "}.get(self.code)
        clear |= last is not None and lines[0].startswith("run ") and lines[-1].startswith(last)
        return "refused" if clear and "Traceback" not in self.stderr else "traceback"


def outcome(work: Callable[[], object], kill: float | None = None, alone: bool = False) -> Outcome:
    """Does ``work`` in a forked process, which is ended after 30 s of a processor's time.

    SIGKILL comes after ``kill`` seconds, to the process ``alone`` or to all that it started.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(10 * SECONDS)  # what sleeps
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            code = 1
            try:
                work()
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                for stream in (sys.stdout, sys.stderr):
                    with suppress(OSError):
                        stream.flush()
                os._exit(code)
        with suppress(OSError):  # it may have done so itself
            os.setpgid(child, child)
        if kill is not None:
            time.sleep(kill)
            (os.kill if alone else os.killpg)(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Outcome(code, *texts)


def command(root: Path, *words: object) -> Callable[[], None]:
    """Returns the work of ``moelaws WORDS`` in the folder ``root``."""

    def work() -> None:
        from moelaws.cli import main

        os.chdir(root)
        sys.argv = ["moelaws", *map(str, words)]
        main()

    return work


def judged(case: str, ended: Outcome, expected: str | None = None, of: str = "cases") -> str:
    """Counts the outcome of a case and returns its kind; fails where it is a defect."""
    kind = ended.kind(expected)
    TALLY[of] += 1
    TALLY[kind] += 1
    assert kind in ("same", "answered", "refused"), (
        f"{case}, seed {SEED}: {kind}\n{ended.stdout[-2000:]}{ended.stderr}"
    )
    return kind
