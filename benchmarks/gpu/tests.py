"""(a) The tests that can use a GPU, in a process of their own a folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path
from typing import Any

from gpu.parts import REPOSITORY, Item, Setting

FOLDERS = ("tests/gpu", "tests/megablocks")
MOST_SECONDS = 240


def items(setting: Setting) -> dict[str, Item]:
    """A measurement for each folder of tests: their outcomes."""
    folders = FOLDERS[:1] if setting.small else FOLDERS
    return {folder: partial(outcomes, setting, folder) for folder in folders}


def outcomes(setting: Setting, folder: str) -> dict[str, Any]:
    """Returns how many tests failed and were skipped, and the words of those that failed."""
    with tempfile.TemporaryDirectory() as other:  # all of OUT is one file of results
        return _outcomes(setting, folder, Path(other) / "report.xml")


def _outcomes(setting: Setting, folder: str, report: Path) -> dict[str, Any]:
    # Without the project's options: they ask for pytest-xdist, and one process has the GPU.
    words = ["-q", "-p", "no:cacheprovider", "--override-ini=addopts=", f"--junitxml={report}"]
    paths = os.pathsep.join(path for path in sys.path if path)
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if setting.device == "cpu" else {}
    limit = None if setting.device == "cpu" else MOST_SECONDS  # of a machine that is lent
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, folder],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=limit,
        env={**os.environ, **hidden, "PYTHONPATH": paths},
    )  # fmt: skip
    if not report.exists():
        raise RuntimeError(
            f"pytest ended with {done.returncode}: {(done.stdout + done.stderr)[-800:]}"
        )
    suite = next(ET.parse(report).iter("testsuite"))
    counts = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
    bad = [
        {"test": case.get("name"), "message": (word.get("message") or "")[:400]}
        for case in suite.iter("testcase")
        for word in case
        if word.tag in ("failure", "error")
    ]
    reasons = sorted({word.get("message") or "" for word in suite.iter("skipped")})
    return {**counts, "failed_tests": bad, "why_skipped": reasons, "seconds": suite.get("time")}
