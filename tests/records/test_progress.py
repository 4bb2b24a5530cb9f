"""How far work is: lines for a log, bars for a terminal."""

import io
import re

import pytest

from moelaws.corpus.prepare import shown_by
from moelaws.records import progress
from moelaws.records.progress import reporting


class Clock:
    """Seconds that pass when the test says so."""

    now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_a_log_gets_a_line_every_five_seconds_and_none_of_the_work_done_before(clock, capsys):
    with reporting() as report:
        for step in range(10, 24):
            report("run", step, 100, f"step {step}/100", tokens=512 * step)
            clock.now += 1.0
    assert capsys.readouterr().err.splitlines() == [
        "run: step 15/100, 512 tokens/s, 85 s left",
        "run: step 20/100, 512 tokens/s, 80 s left",
    ]


def test_a_short_stage_is_silent_and_a_long_one_says_its_end(clock, capsys):
    with reporting() as report:
        show = shown_by(report, "c")
        show("index", 10**6, 10**6, 0)
        for seconds, megabytes in ((0, 0), (6, 6), (1, 10)):
            clock.now += seconds
            show("words", megabytes * 10**6, 10**7, 0)
        show("merges", 0, None, 0)
        clock.now += 6
        show("fetch", 10**6, None, 0)
    assert capsys.readouterr().err.splitlines() == [
        "c, counting words for the BPE: 6.0 of 10.0 MB, 1.0 MB/s, 4 s left",
        "c, counting words for the BPE: 10.0 of 10.0 MB, 1.4 MB/s",
    ]


def test_a_terminal_gets_a_bar_for_each_stage(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    with reporting() as report:
        report("reading", 10, None)
        report("run", 10, 20, "loss 4.2", tokens=10)
        report("run", 20, 20, "loss 4.1", tokens=512_000)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert "reading" in shown
    assert re.search(r"run .*loss 4.1, [\d,]+ tokens/s", shown)
