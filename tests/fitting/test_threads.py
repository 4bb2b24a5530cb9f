"""Several threads give what one gives, end together, and raise what one raises."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from fitting_case import entry

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.fitting.threads import GivenUpError, each, keep_on, using_threads

COUNTS = (1, 2, 3)


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol": {"sample": 900}, "bootstrap": 260, "holdout": "D>2e11"},
        {"protocol": {"sample": 130, "objective": "absolute"}, "bootstrap": 130},
        {"protocol": {"sample": 130}, "bootstrap": 5, "profile": ["alpha"], "rollout": "D"},
    ],
)
def test_reports_are_the_same_bytes_whatever_the_number_of_threads(dense, fields):
    law, table = laws.fittable("chinchilla"), dense(sizes=6, tokens=5)
    reports = []
    for count in COUNTS:
        with using_threads(count):
            report = fit(law, table, entry(law, **fields))
        reports.append((repr(report.to_json()), report.draws.to_csv(float_format="%.17g")))
    assert reports[1] == reports[0]
    assert reports[2] == reports[0]


@pytest.mark.parametrize("count", COUNTS)
def test_each_reports_in_order_from_the_callers_thread(count):
    ends, order, callers = np.zeros(40), [], set()

    def work(item):
        time.sleep(0.001 * (item % 3))
        ends[item] = item

    def done(item):
        assert ends[item] == item
        order.append(item)
        callers.add(threading.get_ident())

    with using_threads(count):
        each(work, iter(range(40)), done)
    assert order == list(range(40))
    assert callers == {threading.get_ident()}


@pytest.mark.parametrize("count", COUNTS)
def test_the_error_of_the_first_item_that_fails_is_raised(count):
    order = []

    def work(item):
        if item == 5:
            time.sleep(0.02)  # the seventh fails earlier, if it is begun
        if item in (5, 7):
            raise ValueError(f"item {item}")

    with using_threads(count), pytest.raises(ValueError, match="item 5"):
        each(work, range(40), order.append)
    assert order == list(range(5))


@pytest.mark.parametrize("count", COUNTS)
def test_settings_of_numpy_hold_in_every_thread(count):
    with using_threads(count), np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        each(lambda item: np.ones(2) / np.zeros(2), range(3))


def test_ctrl_c_ends_all_threads_at_once():
    before, began = threading.active_count(), time.monotonic()
    ended = []

    def work(item):
        try:
            while time.monotonic() < began + 20:
                time.sleep(0.001)
                keep_on()
        except GivenUpError:
            ended.append(item)
            raise

    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with using_threads(3), pytest.raises(KeyboardInterrupt):
        each(work, range(100))
    timer.join()
    assert time.monotonic() - began < 5
    assert sorted(ended) == [0, 1, 2]  # those at work: the others are not begun
    assert threading.active_count() == before


def test_work_within_work_stays_on_its_thread():
    inner = set()

    def work(item):
        each(lambda _: inner.add(threading.get_ident()), range(4))

    with using_threads(2):
        each(work, range(8))
    assert len(inner) <= 2


def test_no_thread_is_refused():
    with pytest.raises(ValueError, match="0 threads"), using_threads(0):
        pass
