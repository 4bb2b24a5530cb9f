"""The launchers of a call: they start its commands, and end with it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping

from moelaws.launcher.client import ANALYSIS, FOLDER, TRAINING

# What the commands of each would load. Apart, for a run's record tells its memory.
MODULES = {
    TRAINING: ("torch", "pyarrow.parquet", "tokenizers", "pydantic", "click"),
    ANALYSIS: (
        *("pandas", "pyarrow.parquet", "pyarrow.compute", "scipy.optimize", "scipy.stats"),
        *("matplotlib.figure", "matplotlib.mathtext", "matplotlib.backends.backend_agg"),
        *("matplotlib.backends.backend_pdf", "pydantic", "click", "yaml", "threadpoolctl"),
    ),
}
TRAINING_RULES = ("train", "train_and_keep", "probe", "bench", "measure_speed")
FEW = 3  # commands, for which a launcher is not worth its own start


class Launchers:
    """The launchers that this process has started; none at first."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []

    def begin(self, jobs: Mapping[str, int]) -> None:
        """Starts a launcher for each kind of which the ``jobs`` (rule -> number) are many.

        A command that starts before its launcher has loaded all, or where there is no launcher,
        loads what it needs by itself.
        """
        counts: Counter[str] = Counter()
        for rule, number in jobs.items():
            counts[TRAINING if rule in TRAINING_RULES else ANALYSIS] += number
        names = [name for name, count in counts.items() if count > FEW]
        # A user who sets the variable wants no launcher, or has some.
        if not names or FOLDER in os.environ or not hasattr(os, "pidfd_open"):  # Linux has it
            return
        folder = tempfile.mkdtemp(prefix="moelaws-")
        for name in names:
            words = ["-P", "-m", "moelaws.launcher.server", os.path.join(folder, name)]
            process = subprocess.Popen(
                [sys.executable, *words, "moelaws.cli:main", *MODULES[name]],
                stdin=subprocess.PIPE,  # open as long as this process lives
                stdout=subprocess.DEVNULL,
                # A library that starts threads when it is loaded could not be forked.
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
            self.processes.append(process)
        os.environ[FOLDER] = folder  # for the jobs

    def end(self) -> None:
        """Lets the launchers end: each does once its last command has ended."""
        for process in self.processes:
            assert process.stdin
            process.stdin.close()
