"""What a Snakemake call shows: a line of progress, warnings, what failed; the log has the rest."""

import os
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

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
@pytest.mark.parametrize(("number", "cores"), [(1, 1), (20, 1), (20, 0)])  # 0 on a cluster
def test_ctrl_c_says_one_line_and_leaves_no_lock(call, number, cores, tmp_path):
    """The jobs hear it as well; more, which may come at any moment, are theirs alone."""
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
def test_a_job_ended_by_a_signal_is_said_to_be_so(call):
    stderr = call("killed.txt", "--config", "kill=(kill -9 $BASHPID)").stderr
    assert "the job killed failed: it was ended by SIGKILL (9), usually for lack of mem" in stderr
