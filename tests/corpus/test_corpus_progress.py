from __future__ import annotations

import io
import re

import pytest

from moelaws.corpus import progress as module
from moelaws.corpus.progress import reporting


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)


def test_a_log_gets_a_line_every_five_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock(monkeypatch)
    with reporting("corpus stdlib") as report:
        for second in range(12):
            clock.now = 100.0 + second
            report("train", 2_000_000 * second, 40_000_000, 500_000 * second)
        report("merges", 0, None, 0)
        for second in (20, 26):
            clock.now = 100.0 + second
            report("fetch", 10**6, None, 0)
    assert capsys.readouterr().err.splitlines() == [
        "corpus stdlib, tokenising the training text: 10.0 of 40.0 MB, 2.0 MB/s, "
        "500,000 tokens/s, 15 s left",
        "corpus stdlib, tokenising the training text: 20.0 of 40.0 MB, 2.0 MB/s, "
        "500,000 tokens/s, 10 s left",
        "corpus stdlib, reading the data set: 1.0 MB, 0.2 MB/s",
    ]


def test_a_short_stage_is_silent_and_a_long_one_says_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock(monkeypatch)
    with reporting("c") as report:
        report("index", 10**6, 10**6, 0)
        report("words", 0, 10**7, 0)
        clock.now += 6
        report("words", 6 * 10**6, 10**7, 0)
        clock.now += 1
        report("words", 10**7, 10**7, 0)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" MB")[0] for line in lines] == [
        "c, counting words for the BPE: 6.0 of 10.0",
        "c, counting words for the BPE: 10.0 of 10.0",
    ]


def test_a_terminal_gets_a_bar_for_each_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(module.sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with reporting("c") as report:
        report("fetch", 10, None, 0)
        report("train", 5 * 10**6, 10**7, 10**6)
        report("train", 10**7, 10**7, 2 * 10**6)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert "reading the data set" in shown
    assert re.search(r"tokenising the training text .*100%.* MB/s, .* tokens/s", shown)
