"""Wall time of commands that a user waits for."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from moelaws import laws
from recovery_designs import sparsity_loss

ADVISE = ("advise", "--compute", "1e21")
EVAL = ("eval", "sparsity.loss", "N=1e9", "D=2e10", "S=0.9")


def measure_commands(times: int) -> dict[str, Any]:
    """Median seconds of each command over ``times`` fresh processes, after one not counted.

    Help, of all commands and of one; a prediction by published coefficients and one by a fit, with
    intervals; all laws and one; advice by published laws, and with that fit.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = _a_fit(Path(folder))
        commands = {
            "help": ("--help",),
            "help_plan": ("plan", "--help"),
            "eval": EVAL,
            "eval_fit": (*EVAL, "--params", str(report)),
            "laws": ("laws",),
            "laws_one": ("laws", "sparsity.loss"),
            "advise": ADVISE,
            "advise_fit": (*ADVISE, "--fits", str(report)),
        }
        medians = {name: _median(words, times) for name, words in commands.items()}
    return {"times": times, **medians}


def _a_fit(folder: Path) -> Path:
    """A fit's report with 1,000 draws beside it."""
    table, report = folder / "runs.csv", folder / "fit.json"
    law = laws.fittable("sparsity.loss")
    points = sparsity_loss()
    columns = {name: points[name] for name in ("N", "D", "S")}
    points.assign(L=law.predict(law.published or {}, columns)).to_csv(table, index=False)
    _run(
        (
            "fit",
            str(table),
            "--law",
            law.id,
            "--sample",
            "20",
            "--bootstrap",
            "1000",
            "--out",
            str(report),
        )
    )
    return report


def _median(words: tuple[str, ...], times: int) -> float:
    seconds = []
    for _ in range(times + 1):
        began = time.perf_counter()
        _run(words)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])


def _run(words: tuple[str, ...]) -> None:
    subprocess.run(
        [sys.executable, "-m", "moelaws", *words],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
