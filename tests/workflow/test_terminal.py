"""What a Snakemake call shows: a line of progress, warnings, what failed; the log has the rest."""

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from moelaws.records import progress
from moelaws.records.progress import StatusLine
from moelaws.workflow.jobs import Jobs
from moelaws.workflow.terminal import CallReport
from moelaws.workflow.trainings import Trainings
from repository import REPOSITORY
from waiting import wait_for

SNAKEFILE = """
from moelaws.workflow.terminal import CallReport
CALL = CallReport(logger, workflow.output_settings, {"make"}, cores=int(config.get("cores", 1)))
logger.addHandler(CALL)
onstart: CALL.begin()
onsuccess: CALL.end(log, True)
onerror: CALL.end(log, False)
rule all:
    input: "good.txt", "bad.txt"
rule make:
    output: "{name}.txt"
    log: "{name}.log"
    shell:
        "echo 'moelaws: warning: at the edge' > {log}; "
        "test {wildcards.name} = good; touch {output}"
rule wait:
    output: "waited.txt"
    log: "wait.log"
    priority: 1
    shell: "touch begun; sleep {config[seconds]}; touch {output}"
rule killed:
    output: "killed.txt"
    log: "killed.log"
    shell: "{config[kill]} > {log}"
"""


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when the test says so."""
    clock = SimpleNamespace(now=100.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_a_log_gets_a_line_for_a_change_and_one_in_a_silent_minute(clock, capsys):
    line = StatusLine()
    for second in range(80):
        clock.now += 1.0
        line.show("half" if second >= 10 else "begun")
    assert capsys.readouterr().err.split() == ["begun", "half", "half"]


@pytest.fixture
def call(tmp_path):
    """Calls Snakemake on a workflow of one good and one failing job, with the default profile."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    shutil.copytree(REPOSITORY / "profiles/default", tmp_path / "profiles/default")

    def make(*words, signals=()):
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "1", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for number in signals:
            wait_for((tmp_path / "begun").exists)
            (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        stdout, stderr = process.communicate()
        return SimpleNamespace(returncode=process.returncode, stdout=stdout, stderr=stderr)

    return make


@pytest.mark.slow
def test_a_failed_job_is_shown_with_its_log_and_no_job_block_is(call, tmp_path):
    done = call("--keep-going")
    assert done.returncode == 1
    assert "moelaws: jobs to do: 3 (make 2, all 1)" in done.stderr
    assert "moelaws: the job make bad failed; its log ends so:\n    moelaws: warning" in done.stderr
    assert "moelaws: good: warning: at the edge\n" in done.stderr
    assert "moelaws: 1/3 jobs" in done.stderr
    assert "moelaws: jobs that failed: 1 of 3 (make bad). What was made stays" in done.stderr
    for hidden in ("localrule", "Finished jobid", "Select jobs", "CalledProcessError"):
        assert hidden not in done.stderr
    (log,) = (tmp_path / ".snakemake/log").iterdir()
    assert f"messages: {log}" in done.stderr
    for kept in ("localrule make", "Finished jobid", "Job stats", "Error in rule make"):
        assert kept in log.read_text()


@pytest.mark.slow
def test_a_good_call_prints_a_few_lines_and_another_none_of_jobs(call):
    lines = call("good.txt").stderr.splitlines()
    assert len(lines) <= 6
    assert re.fullmatch(r"moelaws: all jobs \(1\) are done, in .* s", lines[-1])
    assert "Nothing to be done" in call("good.txt").stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--quiet", "host"], ["--printshellcmds"]], ids=" ".join)
def test_the_command_line_brings_snakemakes_messages_back(call, words):
    shown = call("good.txt", *words).stderr
    assert "localrule make" in shown
    assert "1 of 1 steps (100%) done" in shown


@pytest.mark.slow
def test_a_dry_run_shows_the_table_of_jobs(call):
    shown = call("-n").stdout
    assert re.search(r"Job stats:\n.*total +3", shown, re.S)
    assert "rule make" not in shown
    assert "rule make" in call("-n", "-p").stdout


@pytest.mark.slow
@pytest.mark.parametrize(("number", "cores"), [(1, 1), (2, 1), (2, 0)])  # 0 on a cluster
def test_ctrl_c_says_one_line_and_leaves_no_lock(call, number, cores, tmp_path):
    """The jobs hear it as well; a second Ctrl-C, which may come at any moment, is theirs alone."""
    words = ("waited.txt", "--config", "seconds=30", f"cores={cores}")
    ended = call(*words, signals=[signal.SIGINT] * number)
    assert ended.returncode == 130
    said = ended.stderr.partition("moelaws: interrupted (SIGINT); the call ends when the jobs at ")
    assert said[2] == (
        "work have ended. What was made stays made, and the same call goes on from there\n"
    )
    assert not (tmp_path / ".snakemake/locks").exists()


@pytest.mark.slow
def test_sigterm_waits_for_the_jobs_at_work(call, tmp_path):
    ended = call("waited.txt", "bad.txt", "--config", "seconds=2", signals=[signal.SIGTERM])
    assert ended.returncode == 143
    assert ended.stderr.count("\n") == ended.stderr.partition("interrupted")[0].count("\n") + 1
    assert (tmp_path / "waited.txt").exists()
    assert not (tmp_path / "bad.log").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kill", ["kill -9 $$", "(kill -9 $BASHPID)"])
def test_a_job_ended_by_a_signal_is_said_to_be_so(call, kill):
    stderr = call("killed.txt", "--config", f"kill={kill}").stderr
    assert "the job killed failed: it was ended by SIGKILL (9), usually for lack of mem" in stderr
    assert "moelaws: the job make bad failed; its log" in call("bad.txt").stderr


@pytest.mark.parametrize(("contests", "days"), [("auto", 10), ("all", 40)])
def test_whole_contests_count_more_in_the_time_left(project_folder, contests, days):
    trainings = Trainings(Jobs.load({"studies": "sparsity", "contests": contests}))
    settings = SimpleNamespace(quiet=())
    report = CallReport(logging.getLogger(__name__), settings, (), trainings, cores=2)
    report.begin()
    report.ended.set()
    signal.signal(signal.SIGTERM, report.wind_down)
    report.todo = Counter({"contest": 96_000})
    report._look()
    assert report.runs[-1] == f"about {days} days left"
