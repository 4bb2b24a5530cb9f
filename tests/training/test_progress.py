"""How far a run is: lines for a log, a bar for a terminal."""

import io
import math
import re

from moelaws.training import progress
from moelaws.training.progress import reporting


def test_a_log_gets_a_line_every_five_seconds(monkeypatch, capsys):
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with reporting("run", 100, 512, start=10) as report:
        for step in range(11, 24):
            now += 1.0
            report(step, 4.25)
    assert capsys.readouterr().err.splitlines() == [
        "run step 15/100: loss 4.2500, 512 tokens/s, 85 s left",
        "run step 20/100: loss 4.2500, 512 tokens/s, 80 s left",
    ]


def test_before_the_first_measurement_there_is_no_loss(monkeypatch, capsys):
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with reporting("run", 100, 512, start=0) as report:
        now += 5.0
        report(1, math.nan)
    assert "step 1/100: loss -, 102 tokens/s" in capsys.readouterr().err


def test_a_terminal_gets_a_bar_with_tokens_a_second_and_time_left(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with reporting("run", 20, 512, start=0) as report:
        report(10, 4.25)
        report(20, 4.0)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert re.search(r"run .*20/20 loss 4.000 +[\d,]+ tokens/s +[\d:]+", shown)
