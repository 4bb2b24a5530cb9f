"""Several cores give what one gives, end together, and raise what one raises."""

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fitting_case import entry

from moelaws import laws
from moelaws.fitting import cores
from moelaws.fitting.cores import each, using_cores
from moelaws.fitting.fit import fit
from moelaws.spec.errors import UserError


def test_reports_are_the_same_bytes_whatever_the_number_of_cores(dense, monkeypatch):
    monkeypatch.setattr(cores, "BATCH", 15)  # two batches at least of starts and of draws
    law, table = laws.fittable("chinchilla"), dense(sizes=4, tokens=4)
    spec, reports = entry(law, protocol={"sample": 40}, bootstrap=40, holdout="D>2e11"), []
    for count in (1, 3):
        with using_cores(count):
            report = fit(law, table, spec)
        reports.append((repr(report.to_json()), report.draws.to_csv(float_format="%.17g")))
    assert reports[1] == reports[0]


def test_groups_on_several_cores_are_those_of_one_in_their_order(dense):
    law, table = laws.fittable("chinchilla"), dense(sizes=6, tokens=5)
    table = table.assign(half=[i % 2 for i in range(len(table))])
    spec = entry(law, split_by="half", protocol={"sample": 40}, bootstrap=20)
    alone, progress = fit(law, table, spec), []
    with using_cores(2):
        together = fit(law, table, spec, progress=lambda *stage: progress.append(stage))
    assert [part.where["half"] for part in together.parts] == [0, 1]
    assert repr(together.to_json()) == repr(alone.to_json())
    assert together.draws.equals(alone.draws)
    assert progress == [("groups", 1, 2), ("groups", 2, 2)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_reports_in_order_from_the_callers_process(count):
    together, order = multiprocessing.get_context("fork").Barrier(count), []

    def work(item):
        if item < count:  # every process has an item
            together.wait(timeout=20)
        time.sleep(0.001 * (item % 3))
        return item, os.getpid()

    with using_cores(count):
        ended = each(work, iter(range(40)), 40, order.append)
    assert [item for item, _ in ended] == list(range(40))
    assert order == list(range(1, 41))
    assert len({process for _, process in ended}) == count


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_error_of_the_first_item_that_fails_is_raised(count):
    order = []

    def work(item):
        if item == 5:
            time.sleep(0.02)  # the eighth fails earlier, if it is begun
        if item in (5, 8):
            raise UserError(f"item {item}")

    with using_cores(count), pytest.raises(UserError, match="item 5"):
        each(work, range(40), 40, order.append)
    assert order == list(range(1, 6))


def test_processes_that_cannot_be_started_are_an_error():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, limits[1]))
    try:
        match = r"cannot start 60 processes \(Too many open files\); give fewer --threads"
        with using_cores(60), pytest.raises(UserError, match=match):
            each(lambda item: None, range(60), 60)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


AFTER_FORK = {"act": lambda: None}  # what this process does as soon as it has forked
os.register_at_fork(after_in_parent=lambda: AFTER_FORK["act"]())


def test_ctrl_c_as_processes_start_is_heard_by_this_one_alone(capfd, monkeypatch):
    """A terminal sends it to all of them."""

    def interrupt():
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        for _ in range(50):  # at whatever it does within some milliseconds
            os.kill(int(children[-1]), signal.SIGINT)
            time.sleep(1e-4)

    monkeypatch.setitem(AFTER_FORK, "act", interrupt)
    with using_cores(2):
        assert each(lambda item: item, range(2), 2) == [0, 1]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("end", [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: os._exit(0)])
def test_a_process_that_ends_early_is_an_error(end):
    match = r"a process of this fit was killed or ended early, .*; give fewer --threads"
    with using_cores(2), pytest.raises(UserError, match=match):
        each(lambda item: item == 1 and end(), range(4), 4)


def test_ctrl_c_ends_all_processes_at_once():
    began = time.monotonic()

    def work(item):
        if item == 2:
            os.kill(os.getppid(), signal.SIGINT)
        time.sleep(20)

    with using_cores(3), pytest.raises(KeyboardInterrupt):
        each(work, range(100), 100)
    assert not multiprocessing.active_children()
    assert time.monotonic() - began < 10


ORPHANS = """
import os
from moelaws.fitting.cores import each, using_cores

def work(item):
    os.write(1, b"%d\\n" % os.getpid())
    while True:
        pass

with using_cores(3):
    each(work, range(3), 3)
"""


def test_no_process_outlives_a_parent_that_is_killed():
    with subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE) as parent:
        pids = [int(parent.stdout.readline()) for _ in range(3)]
        assert parent.pid not in pids
        parent.kill()
        try:
            parent.communicate(timeout=20)  # reads until the last process that may write has ended
        except subprocess.TimeoutExpired:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            raise


def test_work_within_work_stays_in_its_process():
    with using_cores(2):
        inner = each(lambda _: set(each(lambda _: os.getpid(), range(4), 4)), range(8), 8)
    assert all(len(processes) == 1 for processes in inner)
