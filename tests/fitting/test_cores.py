"""Several cores give what one gives, end together, and raise what one raises."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fitting_case import entry

from moelaws import laws
from moelaws.fitting import multistart
from moelaws.fitting.cores import each, shared, using_cores
from moelaws.fitting.fit import fit
from moelaws.spec.errors import UserError

COUNTS = (1, 2, 3)


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol": {"sample": 900}, "bootstrap": 260, "holdout": "D>2e11"},
        *(
            pytest.param(fields, marks=pytest.mark.slow)
            for fields in (
                {"protocol": {"sample": 130, "objective": "absolute"}, "bootstrap": 130},
                {"protocol": {"sample": 130}, "bootstrap": 5, "profile": ["alpha"], "rollout": "D"},
            )
        ),
    ],
)
def test_reports_are_the_same_bytes_whatever_the_number_of_cores(dense, fields, monkeypatch):
    monkeypatch.setattr(multistart, "BATCH", 65)  # two batches at least of each case
    law, table = laws.fittable("chinchilla"), dense(sizes=6, tokens=5)
    reports = []
    for count in COUNTS:
        with using_cores(count):
            report = fit(law, table, entry(law, **fields))
        reports.append((repr(report.to_json()), report.draws.to_csv(float_format="%.17g")))
    assert reports[1] == reports[0]
    assert reports[2] == reports[0]


@pytest.mark.parametrize("count", COUNTS)
def test_each_reports_in_order_from_the_callers_process(count):
    order = []
    with using_cores(count):
        ends, workers = shared((40,)), shared((40,), int)

        def work(item):
            workers[item] = os.getpid()
            deadline = time.monotonic() + 20
            while len(set(workers.tolist()) - {0}) < count:  # until every process has an item
                assert time.monotonic() < deadline
            time.sleep(0.001 * (item % 3))
            ends[item] = item
            return str(item)

        def done(item):
            assert ends[item] == item
            order.append(item)

        assert each(work, iter(range(40)), 40, done) == [str(item) for item in range(40)]
    assert order == list(range(40))
    assert len(set(workers.tolist())) == count


def test_a_long_item_holds_up_no_other():
    with using_cores(2):
        done = shared((9,), bool)

        def work(item):
            deadline = time.monotonic() + 20
            while item == 0 and not done[1:].all():
                assert time.monotonic() < deadline
                time.sleep(0.001)
            done[item] = True

        each(work, range(9), 9)


@pytest.mark.parametrize("count", COUNTS)
def test_the_error_of_the_first_item_that_fails_is_raised(count):
    order = []

    def work(item):
        if item == 5:
            time.sleep(0.02)  # the eighth fails earlier, if it is begun
        if item in (5, 8):
            raise UserError(f"item {item}")

    with using_cores(count), pytest.raises(UserError, match="item 5"):
        each(work, range(40), 40, order.append)
    assert order == list(range(5))


@pytest.mark.parametrize("count", COUNTS)
def test_settings_of_numpy_hold_in_every_process(count):
    with using_cores(count), np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        each(lambda item: np.ones(2) / np.zeros(2), range(3), 3)


@pytest.mark.parametrize("count", [2, 3])
def test_an_error_tells_the_line_of_the_law_that_raised_it(count):
    with using_cores(count), pytest.raises(ZeroDivisionError) as raised:
        each(lambda item: 1 // item, range(3), 3)
    (note,) = raised.value.__notes__
    assert "each(lambda item: 1 // item, range(3), 3)" in note


def test_an_error_that_no_pipe_takes_is_told_by_its_text_and_its_line():
    class OwnError(Exception):
        pass

    def work(item):
        raise OwnError("of the law")

    with using_cores(2), pytest.raises(RuntimeError, match="OwnError: of the law") as raised:
        each(work, range(3), 3)
    (note,) = raised.value.__notes__
    assert 'raise OwnError("of the law")' in note


def test_processes_that_cannot_be_started_are_told():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, limits[1]))
    try:
        match = r"cannot start 60 processes \(Too many open files\); give fewer --threads"
        with using_cores(60), pytest.raises(UserError, match=match):
            each(lambda item: None, range(60), 60)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


AFTER_FORKS = []  # what this process does as soon as it has forked
os.register_at_fork(after_in_parent=lambda: [act() for act in AFTER_FORKS])


@pytest.fixture
def after_forks():
    yield AFTER_FORKS
    AFTER_FORKS.clear()


def test_refits_of_one_batch_start_no_process(dense, after_forks):
    law, table, forks = laws.fittable("chinchilla"), dense(sizes=4, tokens=4), []
    after_forks.append(lambda: forks.append(None))
    with using_cores(2):
        fit(law, table, entry(law, protocol={"sample": 1}, bootstrap=5))
    assert not forks


@pytest.mark.usefixtures("heard")
def test_ctrl_c_as_processes_start_is_heard_by_this_one_alone(capfd, after_forks):
    """A terminal sends it to all of them."""

    def interrupt():
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        for _ in range(50):  # at whatever it does within some milliseconds
            os.kill(int(children[-1]), signal.SIGINT)
            time.sleep(1e-4)

    after_forks.append(interrupt)
    with using_cores(2):
        reached = shared((2,), int)

        def work(item):
            reached[item] = 1

        each(work, range(2), 2)
    assert reached.tolist() == [1, 1]
    assert capfd.readouterr().err == ""


def test_a_process_that_the_system_kills_is_told():
    def work(item):
        if item == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    with using_cores(2), pytest.raises(UserError, match=r"was killed \(Killed\).*fewer --threads"):
        each(work, range(4), 4)


def test_a_process_that_ends_itself_is_told():
    for code in (3, 0):
        match = rf"ended early \(exit code {code}\)"
        with using_cores(2), pytest.raises(UserError, match=match):
            each(lambda item, code=code: os._exit(code), range(4), 4)


@pytest.mark.usefixtures("heard")
def test_ctrl_c_ends_all_processes_at_once():
    began = time.monotonic()
    with using_cores(3):
        workers = shared((100,), int)

        def work(item):
            workers[item] = os.getpid()
            if item == 2:  # the last process that is started may be at work before it is known of
                os.kill(os.getppid(), signal.SIGINT)
            time.sleep(20)

        with pytest.raises(KeyboardInterrupt):
            each(work, range(100), 100)
    pids = set(workers.tolist()) - {0}
    assert pids
    while any(map(_runs, pids)):
        assert time.monotonic() - began < 10
        time.sleep(0.01)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


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
        inner = shared((8, 4), int)

        def work(item):
            def write(place):
                inner[item, place] = os.getpid()

            each(write, range(4), 4)

        each(work, range(8), 8)
    assert all(len(set(row)) == 1 for row in inner.tolist())


def test_no_core_is_refused():
    with pytest.raises(ValueError, match="0 cores"), using_cores(0):
        pass
